internal import Codecs
internal import SystemIO

/// A reader of the data files in `policies/interapp`: YAML mappings with known keys. A mistake is
/// an error with line and column.
struct DataFile {
  /// The name in messages.
  let name: String
  let root: YAMLNode

  /// Parses a file.
  ///
  /// - Throws: `failed` if it is not YAML, or not of the schema 1.
  init(_ bytes: [UInt8], name: String, kind: String) throws(OperationError) {
    self.name = name
    do throws(CodecError) {
      root = try YAML.parse(bytes)
    } catch {
      throw OperationError(
        .failed, code: .invalidPolicy, "read", subject: name, reason: error.reason)
    }
    guard root[kind]?.text == "interapp", root["schema"]?.integer == 1 else {
      throw fault(at: root, "it is not a file of the form '\(kind): interapp', 'schema: 1'")
    }
  }

  /// Returns the entries of a mapping, all of whose keys must be known.
  func entries(
    of node: YAMLNode, keys: Set<String>? = nil
  ) throws(OperationError) -> [YAMLNode.Entry] {
    guard let entries = node.mapping else { throw fault(at: node, "a mapping is expected") }
    if let keys, let wrong = entries.first(where: { !keys.contains($0.name) }) {
      throw fault(at: node, "the key '\(wrong.name)' is unknown")
    }
    return entries
  }

  /// Returns the elements of a list; empty for a missing one.
  func list(_ node: YAMLNode?) throws(OperationError) -> [YAMLNode] {
    guard let node else { return [] }
    guard let list = node.sequence else { throw fault(at: node, "a list is expected") }
    return list
  }

  /// Returns one text, or the texts of a list; empty for a missing value.
  func texts(_ node: YAMLNode?) throws(OperationError) -> [ByteString] {
    guard let node else { return [] }
    if let text = node.text { return [ByteString(text)] }
    var texts: [ByteString] = []
    for element in try list(node) { texts.append(ByteString(try text(element, in: node))) }
    return texts
  }

  /// Returns the text of a value that must exist.
  func text(_ node: YAMLNode?, in parent: YAMLNode) throws(OperationError) -> String {
    guard let text = node?.text, !text.isEmpty else {
      throw fault(at: node ?? parent, "a text is expected")
    }
    return text
  }

  /// Returns a type identifier.
  func identifier(_ text: ByteString, at node: YAMLNode) throws(OperationError) -> TypeIdentifier {
    guard let identifier = TypeIdentifier(text) else {
      let reason = TypeIdentifier.fault(of: text) ?? "it is invalid"
      throw fault(at: node, "'\(text)' is not a type identifier: \(reason)")
    }
    return identifier
  }

  /// Returns a version of a system, or nil for a missing value.
  func version(_ node: YAMLNode?) throws(OperationError) -> SystemVersion? {
    guard let node else { return nil }
    guard let version = SystemVersion(ByteString(node.text ?? "")) else {
      throw fault(at: node, "a version is expected, for example 4.2")
    }
    return version
  }

  /// Returns an error at a node.
  func fault(at node: YAMLNode, _ reason: String) -> OperationError {
    OperationError(
      .failed, code: .invalidPolicy, "read", subject: "\(name):\(node.mark)", reason: reason)
  }
}
