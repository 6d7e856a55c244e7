"""Relations: memories that replace, contradict or support each other."""
