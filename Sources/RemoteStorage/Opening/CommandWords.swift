package import SystemIO

/// The words of a command, as a shell separates them.
package enum CommandWords {
  /// Returns the words of a text: separated by spaces and tabs, with single and double quotes and
  /// backslashes as in a POSIX shell ("Shell Command Language", 2.2). Nothing is expanded.
  ///
  /// - Returns: nil if a quote is not closed, the text ends with a backslash, or there is no word.
  package static func split(_ text: ByteString) -> [ByteString]? {
    var words: [ByteString] = []
    var word: [UInt8]?
    var quote: UInt8?
    var rest = text.bytes
    while let byte = rest.popFirst() {
      if byte == backslash, quote != singleQuote {
        guard let next = rest.popFirst() else { return nil }
        // In double quotes a backslash before any other character is literal.
        let isKept = quote != nil && next != backslash && next != doubleQuote
        word = (word ?? []) + (isKept ? [byte, next] : [next])
      } else if byte == quote {
        quote = nil
      } else if quote == nil, byte == singleQuote || byte == doubleQuote {
        (quote, word) = (byte, word ?? [])
      } else if quote == nil, byte == space || byte == tab {
        if let done = word { words.append(ByteString(done)) }
        word = nil
      } else {
        word = (word ?? []) + [byte]
      }
    }
    guard quote == nil else { return nil }
    if let last = word { words.append(ByteString(last)) }
    return words.first?.isEmpty == false ? words : nil
  }

  private static let backslash = UInt8(ascii: "\\")
  private static let singleQuote = UInt8(ascii: "'")
  private static let doubleQuote = UInt8(ascii: "\"")
  private static let space = UInt8(ascii: " ")
  private static let tab = UInt8(ascii: "\t")
}
