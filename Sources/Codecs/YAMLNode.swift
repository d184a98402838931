/// A node of a YAML document, with the place where it stands.
public struct YAMLNode: Sendable, Hashable {
  /// What the node holds.
  public let content: Content
  /// Where the node begins.
  public let mark: Mark

  /// Makes a node.
  public init(_ content: Content, at mark: Mark) {
    self.content = content
    self.mark = mark
  }

  /// What a node may hold.
  public enum Content: Sendable, Hashable {
    case scalar(Scalar)
    case sequence([YAMLNode])
    case mapping([Entry])
  }

  /// A scalar as it is written, not yet resolved to a type.
  public struct Scalar: Sendable, Hashable {
    /// The text without quotes, escapes and folding undone.
    public let text: String
    /// How it is written; only a plain one is anything but a string.
    public let style: Style

    /// Makes a scalar.
    public init(_ text: String, style: Style) {
      self.text = text
      self.style = style
    }
  }

  /// How a scalar is written.
  public enum Style: Sendable, Hashable {
    /// Without quotes.
    case plain
    /// In single or double quotes.
    case quoted
    /// As a block, by `|` or `>`.
    case block
  }

  /// A key and its value in a mapping.
  public struct Entry: Sendable, Hashable {
    /// The key, a scalar.
    public let key: Scalar
    /// Where the key begins.
    public let keyMark: Mark
    /// The value.
    public let value: YAMLNode

    /// Makes an entry.
    public init(key: Scalar, keyMark: Mark, value: YAMLNode) {
      self.key = key
      self.keyMark = keyMark
      self.value = value
    }

    /// The key's text.
    public var name: String { key.text }
  }
}

extension YAMLNode {
  /// The scalar, when it is one.
  public var scalar: Scalar? { if case .scalar(let scalar) = content { scalar } else { nil } }

  /// The elements, when it is a sequence.
  public var sequence: [YAMLNode]? {
    if case .sequence(let elements) = content { elements } else { nil }
  }

  /// The entries in their order, when it is a mapping.
  public var mapping: [Entry]? { if case .mapping(let entries) = content { entries } else { nil } }

  /// The value of the key of that text; nothing when there is none or this is no mapping.
  public subscript(_ name: String) -> YAMLNode? {
    mapping?.first { $0.name.utf8.elementsEqual(name.utf8) }?.value
  }

  /// What kind of node it is, as a message names it: "a mapping", "a list", "text", "a number".
  public var kindName: String {
    switch content {
    case .sequence: "a list"
    case .mapping: "a mapping"
    case .scalar(let scalar):
      switch scalar.resolved {
      case .null: "nothing"
      case .bool: "true or false"
      case .integer, .double: "a number"
      case .string: "text"
      }
    }
  }
}
