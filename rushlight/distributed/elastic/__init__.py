"""Starting the processes of a job, watching them, and starting them again."""
