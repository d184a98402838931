package import Codecs

/// An element of an XML file of an Android app: text as a developer writes it, or the binary form
/// in an APK. Text between elements is not kept.
package struct AndroidXML: Hashable, Sendable {
  package var name: String
  package var attributes: [Attribute]
  package var children: [AndroidXML] = []
  /// The position of the element in the input.
  package var position: CodecError.Position

  /// An attribute.
  package struct Attribute: Hashable, Sendable {
    /// The URI of the namespace; empty for none.
    package var namespace: String
    package var name: String
    /// The value as text; a reference to a resource is `@0x` and its number in hexadecimal.
    package var value: String
    /// The number of the attribute in Android's resources; nil for none and in text.
    package var resource: UInt32?
  }

  /// The limits of a file, which an app's own files do not come near.
  enum Limit {
    static let bytes = 8 << 20
    static let depth = 64
    static let elements = 20_000
    static let attributes = 100_000
    /// All names and values together, in bytes: in the binary form many can refer to one string.
    static let text = 16 << 20
  }

  /// The namespace of attributes for build tools, which are not in the binary form.
  private static let tools = "http://schemas.android.com/tools"

  /// The attributes without those for build tools.
  package var ownAttributes: [Attribute] { attributes.filter { $0.namespace != Self.tools } }

  /// Returns the value of an attribute without a namespace, or nil.
  package func value(_ name: String) -> String? {
    attributes.first { $0.namespace.isEmpty && $0.name == name }?.value
  }

  /// Returns the value of one of Android's own attributes by its number or, in text, its name.
  package func value(_ name: String, resource: UInt32) -> String? {
    attributes.first {
      $0.resource == resource
        || $0.resource == nil && $0.namespace == Self.android && $0.name == name
    }?.value
  }

  private static let android = "http://schemas.android.com/apk/res/android"

  /// Reads a file of either form and returns its root element.
  ///
  /// - Throws: `malformed`, `truncated`, `unsupported` or `limit`, with the position.
  package init(_ bytes: [UInt8]) throws(CodecError) {
    guard bytes.count <= Limit.bytes else {
      throw CodecError(
        .limit, in: .androidXML, reason: "it has more than \(Limit.bytes >> 20) MiB")
    }
    if bytes.starts(with: [0x03, 0x00]) {
      var reader = AndroidXMLBinaryReader(bytes)
      self = try reader.document()
    } else {
      var reader = try AndroidXMLTextReader(bytes)
      self = try reader.document()
    }
  }

  init(name: String, attributes: [Attribute], position: CodecError.Position) {
    self.name = name
    self.attributes = attributes
    self.position = position
  }
}

/// Builds the tree of elements, within the limits.
struct AndroidXMLBuilder {
  /// The open elements.
  private var open: [AndroidXML] = []
  private(set) var root: AndroidXML?
  private var elements = 0
  private var attributes = 0
  private var text = 0

  /// The name of the innermost open element, or nil if none is open.
  var current: String? { open.last?.name }

  /// Counts text of a name or value.
  mutating func count(_ string: String, at position: CodecError.Position) throws(CodecError) {
    text += string.utf8.count
    try check(text <= AndroidXML.Limit.text, "it has too much text", at: position)
  }

  /// Counts an attribute.
  mutating func countAttribute(at position: CodecError.Position) throws(CodecError) {
    attributes += 1
    try check(
      attributes <= AndroidXML.Limit.attributes,
      "it has more than \(AndroidXML.Limit.attributes) attributes", at: position)
  }

  /// Begins an element.
  mutating func begin(_ element: AndroidXML) throws(CodecError) {
    elements += 1
    let position = element.position
    try check(
      elements <= AndroidXML.Limit.elements,
      "it has more than \(AndroidXML.Limit.elements) elements", at: position)
    try check(
      open.count < AndroidXML.Limit.depth,
      "it is nested more than \(AndroidXML.Limit.depth) levels deep", at: position)
    guard root == nil else {
      throw CodecError(
        .malformed, in: .androidXML, reason: "it has two root elements", at: position)
    }
    open.append(element)
  }

  /// Ends the innermost element, which must have the name.
  mutating func end(_ name: String, at position: CodecError.Position) throws(CodecError) {
    guard let element = open.popLast(), element.name.utf8.elementsEqual(name.utf8) else {
      throw CodecError(
        .malformed, in: .androidXML, reason: "the end of an element does not match its start",
        at: position)
    }
    if open.isEmpty { root = element } else { open[open.count - 1].children.append(element) }
  }

  /// Returns the root element at the end of the input.
  func finish(at position: CodecError.Position) throws(CodecError) -> AndroidXML {
    guard open.isEmpty, let root else {
      throw CodecError(
        .truncated, in: .androidXML,
        reason: open.isEmpty ? "it has no element" : "an element has no end", at: position)
    }
    return root
  }

  private func check(
    _ holds: Bool, _ reason: String, at position: CodecError.Position
  ) throws(CodecError) {
    if !holds { throw CodecError(.limit, in: .androidXML, reason: reason, at: position) }
  }
}
