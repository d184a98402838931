/// A node of a YAML document, with its position.
public struct YAMLNode: Sendable, Hashable {
  /// The content of the node.
  public let content: Content
  /// The position of the node.
  public let mark: Mark

  /// Creates a node.
  public init(_ content: Content, at mark: Mark) {
    self.content = content
    self.mark = mark
  }

  /// The content of a node.
  public enum Content: Sendable, Hashable {
    case scalar(Scalar)
    case sequence([YAMLNode])
    case mapping([Entry])
  }

  /// A scalar as written, not yet resolved to a type.
  public struct Scalar: Sendable, Hashable {
    /// The text without quotes, with escapes and folding resolved.
    public let text: String
    /// The style; only plain scalars can be of another type than string.
    public let style: Style

    /// Creates a scalar.
    public init(_ text: String, style: Style) {
      self.text = text
      self.style = style
    }
  }

  /// The style of a scalar.
  public enum Style: Sendable, Hashable {
    /// Without quotes.
    case plain
    /// In single or double quotes.
    case quoted
    /// As a block, with `|` or `>`.
    case block
  }

  /// A key and its value in a mapping.
  public struct Entry: Sendable, Hashable {
    /// The key, a scalar.
    public let key: Scalar
    /// The position of the key.
    public let keyMark: Mark
    /// The value.
    public let value: YAMLNode

    /// Creates an entry.
    public init(key: Scalar, keyMark: Mark, value: YAMLNode) {
      self.key = key
      self.keyMark = keyMark
      self.value = value
    }

    /// The text of the key.
    public var name: String { key.text }
  }
}

extension YAMLNode {
  /// The scalar, or nil.
  public var scalar: Scalar? { if case .scalar(let scalar) = content { scalar } else { nil } }

  /// The elements, or nil if this is not a sequence.
  public var sequence: [YAMLNode]? {
    if case .sequence(let elements) = content { elements } else { nil }
  }

  /// The entries in order, or nil if this is not a mapping.
  public var mapping: [Entry]? { if case .mapping(let entries) = content { entries } else { nil } }

  /// The value of the named key, or nil if it does not exist or this is not a mapping.
  public subscript(_ name: String) -> YAMLNode? {
    mapping?.first { $0.name.utf8.elementsEqual(name.utf8) }?.value
  }

  /// The kind of the node in messages: "a mapping", "a list", "text", "a number".
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

// MARK: - Resolution

extension YAMLNode {
  /// The value of a scalar by the core schema of YAML 1.2.2 (section 10.3.2).
  public enum Resolved: Sendable, Hashable {
    case null
    case bool(Bool)
    case integer(Int64)
    case double(Double)
    case string(String)
  }

  /// The Boolean, or nil if this is not a plain `true` or `false` (`yes`, `no`, `on` and `off` are
  /// not).
  public var bool: Bool? {
    if case .bool(let value) = scalar?.resolved { value } else { nil }
  }

  /// The integer, or nil if this is not a plain integer of at most 64 bits.
  public var integer: Int64? {
    if case .integer(let value) = scalar?.resolved { value } else { nil }
  }

  /// The text of a scalar that is not null, a Boolean or a number: quoted, or plain and of no other
  /// type, such as `no`.
  public var string: String? {
    if case .string(let value) = scalar?.resolved { value } else { nil }
  }

  /// The text of any scalar as written: `1.10` stays `1.10`.
  public var text: String? { scalar?.text }

  /// Whether this is a plain null: empty, `null` or `~`.
  public var isNull: Bool { scalar?.resolved == .null }
}

extension YAMLNode.Scalar {
  /// The value of the scalar: a string unless it is plain and has the form of another type.
  ///
  /// Integers that exceed 64 bits and numbers with a fraction or an exponent are doubles.
  public var resolved: YAMLNode.Resolved {
    guard style == .plain else { return .string(text) }
    switch text {
    case "", "~", "null", "Null", "NULL": return .null
    case "true", "True", "TRUE": return .bool(true)
    case "false", "False", "FALSE": return .bool(false)
    case ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF": return .double(.infinity)
    case "-.inf", "-.Inf", "-.INF": return .double(-.infinity)
    case ".nan", ".NaN", ".NAN": return .double(.nan)
    default: return number ?? .string(text)
    }
  }

  private var number: YAMLNode.Resolved? {
    if text.hasPrefix("0o") { return Self.integer(text.dropFirst(2), radix: 8) }
    if text.hasPrefix("0x") { return Self.integer(text.dropFirst(2), radix: 16) }
    guard Self.isDecimal(Array(text.utf8)) else { return nil }
    if let value = Int64(text) { return .integer(value) }
    return Double(text.hasPrefix("+") ? String(text.dropFirst()) : text).map { .double($0) }
  }

  private static func integer(_ digits: Substring, radix: Int) -> YAMLNode.Resolved? {
    guard let first = digits.utf8.first, first != UInt8(ascii: "+"), first != UInt8(ascii: "-")
    else { return nil }
    return Int64(digits, radix: radix).map { .integer($0) }
  }

  /// Whether the text matches `[-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`.
  private static func isDecimal(_ text: [UInt8]) -> Bool {
    var rest = text[...]
    func dropDigits() -> Int {
      let digits = rest.prefix { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
      rest = rest.dropFirst(digits.count)
      return digits.count
    }
    func drop(_ characters: String) -> Bool {
      guard let first = rest.first, characters.utf8.contains(first) else { return false }
      rest = rest.dropFirst()
      return true
    }
    _ = drop("+-")
    let whole = dropDigits()
    if drop(".") {
      let fraction = dropDigits()
      guard whole + fraction > 0 else { return false }
    } else if whole == 0 {
      return false
    }
    if drop("eE") {
      _ = drop("+-")
      guard dropDigits() > 0 else { return false }
    }
    return rest.isEmpty
  }
}
