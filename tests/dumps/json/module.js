export default [
 {
  "title": "Kites",
  "abstract": "This is the text number 1 of a dump about kites and the strings that hold them."
 }
]