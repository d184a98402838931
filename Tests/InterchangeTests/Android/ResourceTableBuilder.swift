import Codecs

/// Builds the resource table of an APK (`resources.arsc`), as Android's packaging tool writes it.
struct ResourceTableBuilder {
  /// A value with its type.
  enum Value {
    case text(String)
    /// `dataType` and `data` of `Res_value`.
    case typed(UInt8, UInt32)
    /// A value that consists of parts.
    case complex

    static func reference(_ resource: UInt32) -> Value { .typed(0x01, resource) }
    static func flag(_ value: Bool) -> Value { .typed(0x12, value ? .max : 0) }
  }

  /// The form in which a table of values stores the positions of its entries.
  enum Form: UInt8, CaseIterable {
    case full = 0
    case sparse = 1
    case short = 2
    /// Entries of 8 bytes.
    case compact = 0x80
  }

  /// The values of a type for one configuration, by the lower 16 bits of their resource IDs.
  struct Table {
    var type: UInt8
    var values: [UInt16: Value]
    /// The required version of Android; 0 for any.
    var version: UInt16 = 0
    /// Whether another condition is required, here a language.
    var hasLanguage = false
    var form = Form.full
  }

  var tables: [Table]
  var package: UInt32 = 0x7f
  private var strings: [String] = []

  init(_ tables: [Table], package: UInt32 = 0x7f) {
    self.tables = tables
    self.package = package
  }

  /// Returns the file.
  static func build(_ tables: [Table], package: UInt32 = 0x7f) -> [UInt8] {
    var builder = ResourceTableBuilder(tables, package: package)
    let content = tables.flatMap { builder.chunk(of: $0) }
    // The name of the package, and the positions of its types and keys, which are not needed.
    let header = number(package) + [UInt8](repeating: 0, count: 256 + 20)
    return chunk(
      0x0002, number(1),
      builder.pool() + chunk(0x0200, header, chunk(0x0202, number(0), []) + content))
  }

  private mutating func chunk(of table: Table) -> [UInt8] {
    var (positions, entries): ([(UInt16, Int)], [UInt8]) = ([], [])
    for (index, value) in table.values.sorted(by: { $0.key < $1.key }) {
      positions.append((index, entries.count))
      entries += entry(value, isCompact: table.form == .compact)
    }
    let offsets = Self.offsets(positions, table.form)
    var configuration = [UInt8](repeating: 0, count: 60)
    if table.hasLanguage { configuration[4] = UInt8(ascii: "d") }
    configuration[20] = UInt8(table.version & 0xff)
    configuration[21] = UInt8(table.version >> 8)
    let count = table.form == .sparse ? positions.count : Int(positions.last?.0 ?? 0) + 1
    let form: UInt8 = table.form == .compact ? 0 : table.form.rawValue
    let header =
      [table.type, form, 0, 0] + Self.number(UInt32(count))
      + Self.number(UInt32(8 + 12 + 64 + offsets.count)) + Self.number(64) + configuration
    return Self.chunk(0x0201, header, offsets + entries)
  }

  private static func offsets(_ positions: [(UInt16, Int)], _ form: Form) -> [UInt8] {
    let count = Int(positions.last?.0 ?? 0) + 1
    switch form {
    case .sparse: return positions.flatMap { short(Int($0.0)) + short($0.1 / 4) }
    case .short:
      var all = [UInt16](repeating: .max, count: count)
      for (index, offset) in positions { all[Int(index)] = UInt16(offset / 4) }
      if count % 2 != 0 { all.append(0) }
      return all.flatMap { short(Int($0)) }
    case .full, .compact:
      var all = [UInt32](repeating: .max, count: count)
      for (index, offset) in positions { all[Int(index)] = UInt32(offset) }
      return all.flatMap { number($0) }
    }
  }

  private mutating func entry(_ value: Value, isCompact: Bool) -> [UInt8] {
    let (type, data): (UInt8, UInt32)
    switch value {
    case .text(let text): (type, data) = (0x03, string(text))
    case .typed(let given, let number): (type, data) = (given, number)
    case .complex: return Self.short(16) + Self.short(1) + [UInt8](repeating: 0, count: 12)
    }
    if isCompact { return Self.short(0) + [8, type] + Self.number(data) }
    return Self.short(8) + Self.short(0) + Self.number(0) + Self.short(8) + [0, type]
      + Self.number(data)
  }

  private mutating func string(_ text: String) -> UInt32 {
    strings.append(text)
    return UInt32(strings.count - 1)
  }

  private func pool() -> [UInt8] {
    var (offsets, data): ([UInt8], [UInt8]) = ([], [])
    for text in strings {
      offsets += Self.number(UInt32(data.count))
      data += [UInt8(text.utf16.count), UInt8(text.utf8.count)] + Array(text.utf8) + [0]
    }
    while data.count % 4 != 0 { data.append(0) }
    let header =
      Self.number(UInt32(strings.count)) + Self.number(0) + Self.number(1 << 8)
      + Self.number(UInt32(28 + offsets.count)) + Self.number(0)
    return Self.chunk(0x0001, header, offsets + data)
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
