/// Finds the word that was probably intended.
public enum Resemblance {
  /// Returns the word with the smallest edit distance, at most 2, or nil if no word is that close.
  public static func nearest(to text: String, among words: [String]) -> String? {
    guard text.utf8.count <= 64 else { return nil }
    let letters = Array(text.lowercased().utf8)
    let limit = letters.count < 4 ? 1 : 2
    let distances = words.map { (word: $0, distance: distance(letters, Array($0.utf8))) }
    let best = distances.min { $0.distance < $1.distance }
    return best.flatMap { $0.distance <= limit ? $0.word : nil }
  }

  /// Returns the number of letters to change, insert or delete.
  private static func distance(_ one: [UInt8], _ other: [UInt8]) -> Int {
    var row = Array(0...other.count)
    for (index, letter) in one.enumerated() {
      var diagonal = row[0]
      row[0] = index + 1
      for (column, otherLetter) in other.enumerated() {
        let change = diagonal + (letter == otherLetter ? 0 : 1)
        diagonal = row[column + 1]
        row[column + 1] = min(change, row[column + 1] + 1, row[column] + 1)
      }
    }
    return row[other.count]
  }
}
