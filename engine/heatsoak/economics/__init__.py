"""What measured numbers mean in money and memory, and for whom. Pure: numbers in, numbers out."""
