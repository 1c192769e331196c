"""What privacy rests on."""
