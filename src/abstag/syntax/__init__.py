"""The grammar of bibliographies, with positions: readers take values from it, writers change a text by it."""
