"""Steps of GLAD: abilities of workers times easiness of tasks."""
