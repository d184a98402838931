/// Files of identities and of recipients as `age -i` and `age -R` read them: one in each line;
/// empty lines, those that begin with `#` and a byte order mark are ignored.
public enum AgeKeyList {
  /// The largest file that is read, in bytes.
  public static let maximumCount = 1 << 20

  /// Returns the identities of a file, at least one. Identities of plugins and others that are not
  /// supported are skipped if there are others. The caller wipes the text.
  ///
  /// - Throws: `key` or `unsupported` with the number of the line, but not its text; `limit` if the
  ///   file is too large.
  public static func identities(_ text: Span<UInt8>) throws(AgeError) -> [AgeIdentity] {
    var identities: [AgeIdentity] = []
    var refusal: AgeError?
    try forEachLine(text, of: "identity") { line, number throws(AgeError) in
      do throws(AgeError) {
        identities.append(try AgeIdentity(line))
      } catch {
        guard error.kind == .unsupported, !line.starts(with: "-----BEGIN ") else { throw error }
        if refusal == nil { refusal = AgeError(error.kind, "line \(number): \(error.reason)") }
      }
    }
    if identities.isEmpty, let refusal { throw refusal }
    return identities
  }

  /// Returns the recipients of a file, at least one.
  ///
  /// - Throws: `key` or `unsupported` with the number of the line; `limit` if the file is too
  ///   large.
  public static func recipients(_ text: Span<UInt8>) throws(AgeError) -> [AgeRecipient] {
    var recipients: [AgeRecipient] = []
    try forEachLine(text, of: "recipient") { line, _ throws(AgeError) in
      guard let text = InputText.string(line) else { throw AgeError(.key, "it is not UTF-8 text") }
      recipients.append(try AgeRecipient(text))
    }
    return recipients
  }

  /// Calls `body` with each line that has a key, and its number.
  private static func forEachLine(
    _ text: Span<UInt8>, of subject: String, _ body: (Span<UInt8>, Int) throws(AgeError) -> Void
  ) throws(AgeError) {
    guard text.count <= maximumCount else {
      throw AgeError(.limit, "the list of keys exceeds 1 MiB")
    }
    // Editors of other systems write one.
    var (start, number, found) = (text.starts(with: "\u{feff}") ? 3 : 0, 0, 0)
    while start < text.count {
      number += 1
      let end = text.indices[start...].first { text[$0] == UInt8(ascii: "\n") } ?? text.count
      let isEnded = end > start && text[end - 1] == UInt8(ascii: "\r")
      let line = text.extracting(start..<(isEnded ? end - 1 : end))
      start = end + 1
      guard !line.isEmpty, line[0] != UInt8(ascii: "#") else { continue }
      found += 1
      do throws(AgeError) { try body(line, number) } catch {
        throw AgeError(error.kind, "line \(number): \(error.reason)")
      }
    }
    guard found > 0 else { throw AgeError(.key, "the list has no \(subject)") }
  }
}
