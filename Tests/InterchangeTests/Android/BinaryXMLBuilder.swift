import Codecs

/// Builds the binary form of an XML file in an APK, as Android's packaging tool writes it.
struct BinaryXMLBuilder {
  /// An element to write.
  struct Element {
    var name: String
    var attributes: [Attribute] = []
    var children: [Element] = []
  }

  /// An attribute to write.
  struct Attribute {
    var name: String
    var value: Value
    /// The resource ID, which makes it an attribute of Android's namespace.
    var resource: UInt32?
  }

  /// A value with its type.
  enum Value {
    case text(String)
    /// A typed value without text: `dataType` and `data` of `Res_value`.
    case typed(UInt8, UInt32)
  }

  private var strings: [String] = []
  private var resources: [UInt32] = []
  private var body: [UInt8] = []
  private static let android = "http://schemas.android.com/apk/res/android"

  /// Returns the file with this root element.
  static func build(_ root: Element, isUTF8: Bool = true) -> [UInt8] {
    var builder = BinaryXMLBuilder()
    // The names of Android's attributes come first, because the list of their resource IDs refers
    // to them by position.
    builder.collectResources(root)
    builder.add(root)
    let pool = builder.pool(isUTF8: isUTF8)
    let map = chunk(0x0180, [], builder.resources.flatMap { number($0) })
    return chunk(0x0003, [], pool + map + builder.body)
  }

  private mutating func collectResources(_ element: Element) {
    for attribute in element.attributes {
      guard let resource = attribute.resource, !strings.contains(attribute.name) else { continue }
      strings.append(attribute.name)
      resources.append(resource)
    }
    for child in element.children { collectResources(child) }
  }

  private mutating func string(_ text: String) -> UInt32 {
    if let known = strings.firstIndex(of: text) { return UInt32(known) }
    strings.append(text)
    return UInt32(strings.count - 1)
  }

  private mutating func add(_ element: Element) {
    let name = string(element.name)
    var data = Self.number(.max) + Self.number(name)
    data += Self.short(20) + Self.short(20) + Self.short(element.attributes.count)
    data += [UInt8](repeating: 0, count: 6)
    for attribute in element.attributes {
      data += Self.number(attribute.resource == nil ? .max : string(Self.android))
      data += Self.number(string(attribute.name))
      switch attribute.value {
      case .text(let text):
        let number = string(text)
        data += Self.number(number) + Self.short(8) + [0, 0x03] + Self.number(number)
      case .typed(let type, let value):
        data += Self.number(.max) + Self.short(8) + [0, type] + Self.number(value)
      }
    }
    let node = Self.number(1) + Self.number(.max)
    body += Self.chunk(0x0102, node, data)
    for child in element.children { add(child) }
    body += Self.chunk(0x0103, node, Self.number(.max) + Self.number(name))
  }

  private func pool(isUTF8: Bool) -> [UInt8] {
    var offsets: [UInt8] = []
    var data: [UInt8] = []
    for text in strings {
      offsets += Self.number(UInt32(data.count))
      data += isUTF8 ? Self.utf8(text) : Self.utf16(text)
    }
    while data.count % 4 != 0 { data.append(0) }
    let header =
      Self.number(UInt32(strings.count)) + Self.number(0) + Self.number(isUTF8 ? 1 << 8 : 0)
      + Self.number(UInt32(28 + offsets.count)) + Self.number(0)
    return Self.chunk(0x0001, header, offsets + data)
  }

  private static func utf8(_ text: String) -> [UInt8] {
    func length(_ count: Int) -> [UInt8] {
      count < 0x80 ? [UInt8(count)] : [0x80 | UInt8(count >> 8), UInt8(count & 0xff)]
    }
    return length(text.utf16.count) + length(text.utf8.count) + Array(text.utf8) + [0]
  }

  private static func utf16(_ text: String) -> [UInt8] {
    short(text.utf16.count) + text.utf16.flatMap { short(Int($0)) } + [0, 0]
  }

  private static func chunk(_ type: Int, _ header: [UInt8], _ data: [UInt8]) -> [UInt8] {
    short(type) + short(8 + header.count) + number(UInt32(8 + header.count + data.count)) + header
      + data
  }

  private static func short(_ value: Int) -> [UInt8] { [UInt8(value & 0xff), UInt8(value >> 8)] }

  private static func number(_ value: UInt32) -> [UInt8] {
    var bytes: [UInt8] = []
    LittleEndian.append(value, to: &bytes)
    return bytes
  }
}
