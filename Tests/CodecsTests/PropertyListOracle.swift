import Codecs
import Foundation
import TestSupport
import Testing

/// Foundation's property lists, for comparison with the project's own reader and writer.
enum PropertyListOracle {
  /// Returns the value that Foundation reads, with members sorted by key.
  static func read(_ bytes: [UInt8]) throws -> PropertyList {
    let value = try PropertyListSerialization.propertyList(from: Data(bytes), format: nil)
    return try #require(converted(value))
  }

  static func xml(_ value: PropertyList) throws -> [UInt8] { try written(value, .xml) }

  static func binary(_ value: PropertyList) throws -> [UInt8] { try written(value, .binary) }

  private static func written(
    _ value: PropertyList, _ format: PropertyListSerialization.PropertyListFormat
  ) throws -> [UInt8] {
    Array(
      try PropertyListSerialization.data(
        fromPropertyList: foundation(value), format: format, options: 0))
  }

  /// Returns the value with the members of all dictionaries sorted, because Foundation does not
  /// keep their order.
  static func sorted(_ value: PropertyList) -> PropertyList {
    switch value {
    case .array(let elements): .array(elements.map { sorted($0) })
    case .dictionary(let members):
      .dictionary(
        members.map { PropertyList.Member($0.key, sorted($0.value)) }.sorted { $0.key < $1.key })
    default: value
    }
  }

  private static func converted(_ value: Any) -> PropertyList? {
    switch value {
    case let text as String: return .string(text)
    case let date as Date: return .date(date.timeIntervalSinceReferenceDate)
    case let data as Data: return .data(Array(data))
    case let flag as Bool where isBool(value): return .bool(flag)
    case let number as NSNumber: return self.number(number)
    case let elements as [Any]:
      let all = elements.compactMap { converted($0) }
      return all.count == elements.count ? .array(all) : nil
    case let members as [String: Any]:
      let all = members.compactMap { key, value in
        converted(value).map { PropertyList.Member(key, $0) }
      }
      return all.count == members.count
        ? .dictionary(all.sorted { $0.key < $1.key }) : nil
    default: return nil
    }
  }

  private static func isBool(_ value: Any) -> Bool {
    guard let number = value as? NSNumber else { return value is Bool }
    return number === (true as NSNumber) || number === (false as NSNumber)
      || String(cString: number.objCType) == "c"
  }

  private static func number(_ number: NSNumber) -> PropertyList {
    switch String(cString: number.objCType) {
    case "d", "f": return .real(number.doubleValue)
    default: break
    }
    let text = number.stringValue
    if let value = Int64(text) { return .integer(value) }
    if let value = UInt64(text) { return .unsigned(value) }
    return .real(number.doubleValue)
  }

  private static func foundation(_ value: PropertyList) -> Any {
    switch value {
    case .string(let text): text
    case .integer(let number): NSNumber(value: number)
    case .unsigned(let number): NSNumber(value: number)
    case .real(let number): NSNumber(value: number)
    case .bool(let flag): flag
    case .date(let seconds): Date(timeIntervalSinceReferenceDate: seconds)
    case .data(let bytes): Data(bytes)
    case .array(let elements): elements.map { foundation($0) }
    case .dictionary(let members):
      Dictionary(
        members.map { ($0.key, foundation($0.value)) }, uniquingKeysWith: { $1 })
    case .uid(let number): NSNumber(value: number)
    }
  }
}

/// A generator of random property lists that contain all kinds of values.
struct PropertyListGenerator {
  var random: Seeded
  /// Whether strings may contain characters that XML does not allow.
  var allowsControls = false

  init(_ seed: UInt64) { random = Seeded(seed) }

  mutating func value(depth: Int = 0) -> PropertyList {
    switch Int.random(in: 0..<(depth > 4 ? 8 : 10), using: &random) {
    case 0, 1: return .string(text())
    case 2:
      return .integer(
        Int64(truncatingIfNeeded: random.next()) >> Int64.random(in: 0..<64, using: &random))
    case 3: return .unsigned(random.next() | 1 << 63)
    case 4: return .real(Double(Int64(truncatingIfNeeded: random.next())) / 1024)
    case 5: return .bool(Bool.random(using: &random))
    case 6: return .date(Double(Int64.random(in: -6_000_000_000...6_000_000_000, using: &random)))
    case 7:
      let count = Int.random(in: 0..<100, using: &random)
      return .data((0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) })
    case 8: return .array((0..<size()).map { _ in value(depth: depth + 1) })
    default:
      let members = (0..<size()).map { location in
        PropertyList.Member(
          "\(location)" + text(), value(depth: depth + 1))
      }
      return .dictionary(members)
    }
  }

  private mutating func size() -> Int {
    Int.random(in: 0..<10, using: &random) == 0 ? 20 : Int.random(in: 0..<5, using: &random)
  }

  private mutating func text() -> String {
    let scalars: [Unicode.Scalar] = [
      "a", "Z", " ", "<", ">", "&", "\"", "'", "\n", "\t", "é", "ß", "日", "😀", "\u{301}", "]", "\r",
    ]
    var string = ""
    for _ in 0..<Int.random(in: 0..<20, using: &random) {
      string.unicodeScalars.append(scalars[Int.random(in: 0..<scalars.count, using: &random)])
    }
    return string
  }
}
