"""One question: analysed, walked through the graph, ranked. Explains nothing and learns nothing."""
