"""What is kept: synchronous storage over SQLAlchemy Core, and the export's schema."""
