extension PropertyList {
  /// Returns the value as an XML property list, indented with tabs; equal values produce equal
  /// bytes.
  ///
  /// - Throws: `unrepresentable` for values that XML cannot represent: control characters, a date
  ///   outside the years 0 to 9999. `limit` for a value nested deeper than 64 levels, the reader's
  ///   limit.
  public func xml() throws(CodecError) -> [UInt8] {
    var writer = XMLWriter()
    try writer.add(self, depth: 0)
    let head = """
      <?xml version="1.0" encoding="UTF-8"?>
      <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" \
      "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
      <plist version="1.0">

      """
    return Array(head.utf8) + writer.output + Array("</plist>\n".utf8)
  }

  /// Writes the elements of an XML property list.
  private struct XMLWriter {
    var output: [UInt8] = []
    private static let dataColumns = 76

    mutating func add(_ value: PropertyList, depth: Int) throws(CodecError) {
      switch value {
      case .string(let text): try element("string", text: try escaped(text), depth: depth)
      case .integer(let number): line("<integer>\(number)</integer>", depth)
      case .unsigned(let number): line("<integer>\(number)</integer>", depth)
      case .real(let number): line("<real>\(number)</real>", depth)
      case .bool(let flag): line(flag ? "<true/>" : "<false/>", depth)
      case .date(let seconds): try date(seconds, depth)
      case .data(let bytes): data(bytes, depth)
      case .array(let elements): try array(elements, depth)
      case .dictionary(let members): try dictionary(members, depth)
      case .uid(let number):
        let key = PropertyList.Member("CF$UID", .integer(Int64(clamping: number)))
        try dictionary([key], depth)
      }
    }

    private mutating func line(_ text: String, _ depth: Int) {
      output.append(contentsOf: repeatElement(UInt8(ascii: "\t"), count: depth))
      output.append(contentsOf: text.utf8)
      output.append(UInt8(ascii: "\n"))
    }

    private mutating func element(_ name: String, text: String, depth: Int) throws(CodecError) {
      line("<\(name)>\(text)</\(name)>", depth)
    }

    private mutating func array(_ elements: [PropertyList], _ depth: Int) throws(CodecError) {
      try PropertyList.checkDepth(depth)
      if elements.isEmpty { return line("<array/>", depth) }
      line("<array>", depth)
      for element in elements { try add(element, depth: depth + 1) }
      line("</array>", depth)
    }

    private mutating func dictionary(
      _ members: [PropertyList.Member], _ depth: Int
    ) throws(CodecError) {
      try PropertyList.checkDepth(depth)
      if members.isEmpty { return line("<dict/>", depth) }
      line("<dict>", depth)
      for member in members {
        try element("key", text: try escaped(member.key), depth: depth + 1)
        try add(member.value, depth: depth + 1)
      }
      line("</dict>", depth)
    }

    private mutating func date(_ seconds: Double, _ depth: Int) throws(CodecError) {
      guard let text = DateText.text(of: seconds) else {
        throw CodecError(
          .unrepresentable, in: .propertyList, reason: "a date outside the years 0 to 9999")
      }
      line("<date>\(text)</date>", depth)
    }

    private mutating func data(_ bytes: [UInt8], _ depth: Int) {
      line("<data>", depth)
      var rest = bytes[...]
      while !rest.isEmpty {
        line(Base64.encode(rest.prefix(Self.dataColumns / 4 * 3)), depth)
        rest = rest.dropFirst(Self.dataColumns / 4 * 3)
      }
      line("</data>", depth)
    }

    private func escaped(_ text: String) throws(CodecError) -> String {
      guard let escaped = XMLElement.escaped(text) else {
        throw CodecError(
          .unrepresentable, in: .propertyList,
          reason: "'\(text)' has a character that XML cannot represent")
      }
      return escaped
    }
  }

  /// Dates of property lists: seconds since 2001, and in XML `2001-01-01T00:00:00Z`.
  enum DateText {
    private static let secondsBefore2001: Int64 = 978_307_200
    private static let secondsADay: Int64 = 86_400

    /// Returns the seconds for a text of exactly the form `YYYY-MM-DDTHH:MM:SSZ`, or nil for any
    /// other text.
    static func seconds(of text: ArraySlice<UInt8>) -> Double? {
      let form = Array("dddd-dd-ddTdd:dd:ddZ".utf8)
      guard text.count == form.count else { return nil }
      var numbers: [Int64] = [0]
      for (byte, expected) in zip(text, form) {
        if expected == UInt8(ascii: "d") {
          guard byte >= 0x30, byte <= 0x39 else { return nil }
          numbers[numbers.count - 1] = numbers[numbers.count - 1] * 10 + Int64(byte - 0x30)
        } else {
          guard byte == expected else { return nil }
          numbers.append(0)
        }
      }
      let (year, month, day) = (numbers[0], numbers[1], numbers[2])
      guard (1...12).contains(month), (1...days(inMonth: month, of: year)).contains(day),
        numbers[3] < 24, numbers[4] < 60, numbers[5] < 61
      else { return nil }
      let time = numbers[3] * 3600 + numbers[4] * 60 + numbers[5]
      return Double(
        dayNumber(year: year, month: month, day: day) * secondsADay + time - secondsBefore2001)
    }

    /// Returns the text for a time, without fractional seconds, or nil outside the years 0 to 9999.
    static func text(of seconds: Double) -> String? {
      guard seconds.isFinite, abs(seconds) < 1e12 else { return nil }
      let all = Int64(seconds.rounded(.down)) + secondsBefore2001
      let (dayNumber, time) = floorDivided(all, by: secondsADay)
      let (year, month, day) = civil(dayNumber)
      guard (0...9999).contains(year) else { return nil }
      return padded(year, 4) + "-" + padded(month) + "-" + padded(day) + "T"
        + padded(time / 3600) + ":" + padded(time / 60 % 60) + ":" + padded(time % 60) + "Z"
    }

    private static func padded(_ number: Int64, _ width: Int = 2) -> String {
      let text = String(number)
      return String(repeating: "0", count: max(0, width - text.utf8.count)) + text
    }

    private static func floorDivided(_ number: Int64, by size: Int64) -> (Int64, Int64) {
      let remainder = ((number % size) + size) % size
      return ((number - remainder) / size, remainder)
    }

    private static func days(inMonth month: Int64, of year: Int64) -> Int64 {
      let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
      return month == 2 ? (isLeap ? 29 : 28) : [4, 6, 9, 11].contains(month) ? 30 : 31
    }

    /// Returns the days since 1970-01-01 in the Gregorian calendar, with 400-year eras that start
    /// in March.
    private static func dayNumber(year: Int64, month: Int64, day: Int64) -> Int64 {
      let (era, yearOfEra) = floorDivided(month <= 2 ? year - 1 : year, by: 400)
      let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
      let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
      return era * 146_097 + dayOfEra - 719_468
    }

    private static func civil(_ dayNumber: Int64) -> (Int64, Int64, Int64) {
      let (era, dayOfEra) = floorDivided(dayNumber + 719_468, by: 146_097)
      let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
      let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
      let marchMonth = (5 * dayOfYear + 2) / 153
      let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
      let day = dayOfYear - (153 * marchMonth + 2) / 5 + 1
      return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
    }
  }

}
