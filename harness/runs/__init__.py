"""What is made of single runs: several devices, suites, searches, watches, programs, and launches made again."""
