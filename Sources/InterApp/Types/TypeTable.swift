internal import Codecs
package import SystemIO

/// The types and signatures of `policies/interapp/types.yaml`.
package struct TypeTable: Sendable {
  /// The declarations in the order of the file.
  package let declarations: [TypeDeclaration]
  /// The signatures; the first that matches applies.
  package let signatures: [FileSignature]

  /// Creates a table, for example an empty one.
  package init(declarations: [TypeDeclaration] = [], signatures: [FileSignature] = []) {
    self.declarations = declarations
    self.signatures = signatures
  }

  /// Reads the file.
  ///
  /// - Throws: `failed` for a mistake, with line and column.
  package init(reading bytes: [UInt8], name: String) throws(OperationError) {
    let file = try DataFile(bytes, name: name, kind: "types")
    var declarations: [TypeDeclaration] = []
    _ = try file.entries(of: file.root, keys: ["types", "schema", "sections", "signatures"])
    for section in try file.list(file.root["sections"]) {
      _ = try file.entries(of: section, keys: ["source", "assigned", "types"])
      _ = try file.text(section["source"], in: section)
      let origin: TypeDeclaration.Origin =
        section["assigned"]?.bool == true ? .assigned : .system
      guard let types = section["types"] else { continue }
      for entry in try file.entries(of: types) {
        declarations.append(try Self.declaration(entry, as: origin, in: file))
      }
    }
    var signatures: [FileSignature] = []
    for node in try file.list(file.root["signatures"]) {
      signatures.append(try Self.signature(node, file))
    }
    self.init(declarations: declarations, signatures: signatures)
  }

  private static let typeKeys: Set<String> = ["is", "ext", "mime"]

  private static func declaration(
    _ entry: YAMLNode.Entry, as origin: TypeDeclaration.Origin, in file: DataFile
  ) throws(OperationError) -> TypeDeclaration {
    let node = entry.value
    let identifier = try file.identifier(ByteString(entry.name), at: node)
    _ = try file.entries(of: node, keys: typeKeys)
    var parents: [TypeIdentifier] = []
    for text in try file.texts(node["is"]) { parents.append(try file.identifier(text, at: node)) }
    return TypeDeclaration(
      identifier, conformsTo: parents,
      extensions: try file.texts(node["ext"]).map(\.lowercasedASCII),
      mimeTypes: try file.texts(node["mime"]).map(\.lowercasedASCII), origin: origin)
  }

  private static func signature(
    _ node: YAMLNode, _ file: DataFile
  ) throws(OperationError) -> FileSignature {
    _ = try file.entries(of: node, keys: ["type", "match", "generic", "source"])
    _ = try file.text(node["source"], in: node)
    let type = try file.identifier(ByteString(try file.text(node["type"], in: node)), at: node)
    var patterns: [FileSignature.Pattern] = []
    for part in try file.list(node["match"]) { patterns.append(try pattern(part, file)) }
    if patterns.isEmpty { throw file.fault(at: node, "it has no pattern") }
    return FileSignature(
      type: type, patterns: patterns, isGeneric: node["generic"]?.bool == true)
  }

  private static func pattern(
    _ node: YAMLNode, _ file: DataFile
  ) throws(OperationError) -> FileSignature.Pattern {
    _ = try file.entries(of: node, keys: ["at", "text", "hex"])
    guard let offset = node["at"]?.integer, offset >= 0, offset < FileSignature.headLength else {
      throw file.fault(at: node, "an offset of 0 to \(FileSignature.headLength - 1) is expected")
    }
    let bytes: [UInt8]
    if let hex = node["hex"]?.text {
      guard let read = Self.bytes(hex: Array(hex.utf8)) else {
        throw file.fault(at: node, "pairs of hexadecimal digits are expected")
      }
      bytes = read
    } else {
      bytes = Array(try file.text(node["text"], in: node).utf8)
    }
    guard !bytes.isEmpty, Int(offset) + bytes.count <= FileSignature.headLength else {
      throw file.fault(at: node, "the pattern is empty, or ends after \(FileSignature.headLength)")
    }
    return FileSignature.Pattern(offset: Int(offset), bytes: bytes)
  }

  private static func bytes(hex: [UInt8]) -> [UInt8]? {
    let values = hex.compactMap(\.hexValue)
    guard values.count == hex.count, values.count % 2 == 0 else { return nil }
    return stride(from: 0, to: values.count, by: 2).map { values[$0] << 4 | values[$0 + 1] }
  }
}
