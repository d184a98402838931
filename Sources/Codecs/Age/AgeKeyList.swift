/// Files of identities and of recipients as `age -i` and `age -R` read them: one in each line;
/// empty lines and those that begin with `#` are ignored.
public enum AgeKeyList {
  /// The largest file that is read, in bytes.
  public static let maximumCount = 1 << 20

  /// Returns the identities of a file, at least one. The caller wipes the text.
  ///
  /// - Throws: `key` or `unsupported` with the number of the line, but not its text; `limit` if the
  ///   file is too large.
  public static func identities(_ text: Span<UInt8>) throws(AgeError) -> [AgeIdentity] {
    var identities: [AgeIdentity] = []
    try forEachLine(text, of: "identity") { line throws(AgeError) in
      identities.append(try AgeIdentity(line))
    }
    return identities
  }

  /// Returns the recipients of a file, at least one.
  ///
  /// - Throws: `key` or `unsupported` with the number of the line; `limit` if the file is too
  ///   large.
  public static func recipients(_ text: Span<UInt8>) throws(AgeError) -> [AgeRecipient] {
    var recipients: [AgeRecipient] = []
    try forEachLine(text, of: "recipient") { line throws(AgeError) in
      guard let text = InputText.string(line) else { throw AgeError(.key, "it is not UTF-8 text") }
      recipients.append(try AgeRecipient(text))
    }
    return recipients
  }

  /// Calls `body` with each line that has a key.
  private static func forEachLine(
    _ text: Span<UInt8>, of subject: String, _ body: (Span<UInt8>) throws(AgeError) -> Void
  ) throws(AgeError) {
    guard text.count <= maximumCount else {
      throw AgeError(.limit, "the list of keys exceeds 1 MiB")
    }
    var (start, number, found) = (0, 0, 0)
    while start < text.count {
      number += 1
      let end = text.indices[start...].first { text[$0] == UInt8(ascii: "\n") } ?? text.count
      let isEnded = end > start && text[end - 1] == UInt8(ascii: "\r")
      let line = text.extracting(start..<(isEnded ? end - 1 : end))
      start = end + 1
      guard !line.isEmpty, line[0] != UInt8(ascii: "#") else { continue }
      found += 1
      do throws(AgeError) { try body(line) } catch {
        throw AgeError(error.kind, "line \(number): \(error.reason)")
      }
    }
    guard found > 0 else { throw AgeError(.key, "the list has no \(subject)") }
  }
}
