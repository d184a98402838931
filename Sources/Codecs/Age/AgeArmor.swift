/// The ASCII armor of age files: strict PEM (RFC 7468, section 3, figure 3) with the label
/// `AGE ENCRYPTED FILE` ("ASCII armor").
///
/// It is for small files, such as encrypted identities, which are read completely. Files in a
/// repository are binary.
public enum AgeArmor {
  private static let begin = Array("-----BEGIN AGE ENCRYPTED FILE-----".utf8)
  private static let end = Array("-----END AGE ENCRYPTED FILE-----".utf8)
  private static let columns = 64

  /// Whether bytes begin like an armored file, after white space.
  public static func isArmored(_ bytes: Span<UInt8>) -> Bool {
    let start = bytes.indices.first { !bytes[$0].isSpace } ?? bytes.count
    return bytes.extracting(start..<bytes.count).starts(with: "-----BEGIN AGE")
  }

  /// Returns the text of a binary file, with line feeds.
  public static func encode(_ file: [UInt8]) -> [UInt8] {
    let text = Array(Base64.encode(file).utf8)
    var armored = begin + [UInt8(ascii: "\n")]
    for start in stride(from: 0, to: text.count, by: columns) {
      armored += text[start..<min(text.count, start + columns)]
      armored.append(UInt8(ascii: "\n"))
    }
    return armored + end + [UInt8(ascii: "\n")]
  }

  /// Returns the binary file of a text.
  ///
  /// Accepts white space before and after, and line feeds preceded by carriage returns, all or none
  /// of them. Refuses everything else that `encode(_:)` would not write.
  ///
  /// - Throws: `armor` with the reason.
  public static func decode(_ text: [UInt8]) throws(AgeError) -> [UInt8] {
    let trimmed = text[...].trimmed
    let hasReturns = trimmed.firstIndex(of: UInt8(ascii: "\n")).map {
      $0 > trimmed.startIndex && trimmed[$0 - 1] == UInt8(ascii: "\r")
    }
    var lines: [ArraySlice<UInt8>] = []
    let parts = trimmed.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    for (number, part) in parts.enumerated() {
      guard number < parts.count - 1, hasReturns == true else {
        lines.append(part)
        continue
      }
      guard part.last == UInt8(ascii: "\r") else {
        throw AgeError(.armor, "line \(number + 1) of the armor ends differently from the first")
      }
      lines.append(part.dropLast())
    }
    return try decode(lines: lines)
  }

  private static func decode(lines: [ArraySlice<UInt8>]) throws(AgeError) -> [UInt8] {
    guard lines.first?.elementsEqual(begin) == true else {
      throw AgeError(.armor, "it does not begin with the line of an armored age file")
    }
    guard lines.count > 1, lines.last?.elementsEqual(end) == true else {
      throw AgeError(.armor, "it does not end with the line of an armored age file")
    }
    let body = lines.dropFirst().dropLast()
    for (number, line) in body.enumerated() {
      let isLast = number == body.count - 1
      guard isLast ? 1...columns ~= line.count : line.count == columns else {
        throw AgeError(.armor, "line \(number + 2) of the armor has \(line.count) characters")
      }
    }
    guard let file = Base64.decode(body.joined()) else {
      throw AgeError(.armor, "it is not canonical Base64")
    }
    return file
  }
}
