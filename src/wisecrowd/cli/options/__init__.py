"""What commands take: their options, declared without heavy imports."""
