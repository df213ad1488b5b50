"""Parts of the application: the services of one room each, with what they depend on."""
