internal import Codecs

/// A canonical form of policy files, independent of comments, key order and quoting.
enum CanonicalContent {
  /// Returns the digest of all files and of the command-line patterns, in order.
  static func digest(
    _ documents: [PolicyDocument], _ patterns: [CommandLinePattern]
  ) -> Digest {
    var bytes: [UInt8] = []
    for document in documents {
      append("file", to: &bytes)
      append(document.content, to: &bytes)
    }
    for text in patterns.flatMap(\.content) { append(text, to: &bytes) }
    return Blake2b.hash(bytes)
  }

  private static func append(_ node: YAMLNode, to bytes: inout [UInt8]) {
    switch node.content {
    case .scalar(let scalar):
      append("scalar", to: &bytes)
      append(scalar.text, to: &bytes)
    case .sequence(let elements):
      append("list \(elements.count)", to: &bytes)
      for element in elements { append(element, to: &bytes) }
    case .mapping(let entries):
      append("mapping \(entries.count)", to: &bytes)
      let sorted = entries.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
      for entry in sorted {
        append(entry.name, to: &bytes)
        append(entry.value, to: &bytes)
      }
    }
  }

  private static func append(_ text: String, to bytes: inout [UInt8]) {
    bytes.append(contentsOf: "\(text.utf8.count):".utf8)
    bytes.append(contentsOf: text.utf8)
  }
}
