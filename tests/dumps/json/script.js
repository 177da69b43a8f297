var papers = [
  {
    "title": "Kites",
    "abstract": "This is the text number 1 of a dump about kites and the strings that hold them."
  },
  {
    "title": "Strings",
    "abstract": "This is the text number 2 of a dump about kites and the strings that hold them."
  }
];
