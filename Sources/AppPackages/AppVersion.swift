package import SandboxModel
package import SystemIO

/// A version and a build of a bundle, ordered as numbers separated by dots; a missing number counts
/// as 0 (Information Property List Key Reference, CFBundleShortVersionString and CFBundleVersion).
/// A version before a release precedes it: `128.0b1`, `1.0~rc1` and `1.0.0-beta.2`.
package struct AppVersion: Sendable, Hashable {
  /// The version that users see; nil if unknown.
  package let version: ByteString?
  /// The build; nil if unknown.
  package let build: ByteString?

  /// Creates a version.
  package init(version: ByteString?, build: ByteString?) {
    (self.version, self.build) = (version, build)
  }

  /// The version of an app on a device.
  package init(_ app: App) { self.init(version: app.version, build: app.build) }

  /// The version of an app's package.
  package init(_ package: AppPackage) {
    self.init(version: package.version, build: package.build)
  }

  /// Whether it precedes another version. A version or build that either of them lacks is ignored.
  package func isEarlier(than other: AppVersion) -> Bool {
    for (own, its) in [(version, other.version), (build, other.build)] {
      guard let own, let its else { continue }
      if Self.precedes(own, its) { return true }
      if Self.precedes(its, own) { return false }
    }
    return false
  }

  /// The version and the build as text.
  package var text: String {
    switch (version, build) {
    case (let version?, let build?): "\(version) (\(build))"
    case (let one?, nil), (nil, let one?): "\(one)"
    case (nil, nil): "no version"
    }
  }

  /// Numbers and stages decide first: `1.0-2` precedes `1.0.1`.
  private static func precedes(_ left: ByteString, _ right: ByteString) -> Bool {
    let (left, right) = (parts(left), parts(right))
    let pairs = (0..<max(left.count, right.count)).map { index in
      (
        own: index < left.count ? left[index] : Part(),
        its: index < right.count ? right[index] : Part()
      )
    }
    for (own, its) in pairs where own.number != its.number { return own.number < its.number }
    for (own, its) in pairs where own.rest != its.rest { return own.precedesByRest(its) }
    return false
  }

  private static func parts(_ text: ByteString) -> [Part] {
    text.bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map(Part.init)
  }

  /// Returns the length of a pre-release stage at the beginning of a text, such as `b1` or `~rc2`;
  /// 0 if there is none.
  package static func stageLength(_ text: ArraySlice<UInt8>) -> Int {
    guard let (_, length) = Part.stage(text) else { return 0 }
    return length + text.dropFirst(length).prefix(while: Part.isDigit).count
  }

  /// A component between two dots.
  private struct Part {
    var number = Number()
    /// Runs of digits without leading zeros, and of other bytes.
    var rest: [[UInt8]] = []

    /// The number of a component, and its pre-release stage with the number after it.
    struct Number: Hashable, Comparable {
      var digits: [UInt8] = []
      var stage = 4
      var stageDigits: [UInt8] = []

      static func < (left: Number, right: Number) -> Bool {
        if left.digits != right.digits { return precedes(left.digits, right.digits) }
        if left.stage != right.stage { return left.stage < right.stage }
        return precedes(left.stageDigits, right.stageDigits)
      }
    }

    init() {}

    init(_ bytes: ArraySlice<UInt8>) {
      var text = bytes
      number.digits = Self.takeNumber(&text)
      if let (stage, length) = Self.stage(text) {
        number.stage = stage
        text = text.dropFirst(length)
        number.stageDigits = Self.takeNumber(&text)
      } else if text.elementsEqual("esr".utf8) {
        text = []
      }
      while let first = text.first {
        if Self.isDigit(first) {
          rest.append(Self.takeNumber(&text))
        } else {
          let run = text.prefix { !Self.isDigit($0) }
          rest.append(Array(run))
          text = text.dropFirst(run.count)
        }
      }
    }

    /// Removes the digits at the beginning of a text; returns them without leading zeros.
    private static func takeNumber(_ text: inout ArraySlice<UInt8>) -> [UInt8] {
      let digits = text.prefix(while: isDigit)
      text = text.dropFirst(digits.count)
      return Array(digits.drop { $0 == 0x30 })
    }

    static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    /// Returns the rank of the stage at the beginning of a text, and the length of its name with
    /// the separators before it; nil if there is none.
    ///
    /// The letters `a`, `b` and `d` name one only before a number (Information Property List Key
    /// Reference, CFBundleVersion; Mozilla, Toolkit version format): `1.0.2k` follows `1.0.2`, and
    /// the build `14B25` is not a beta. A tilde does so before any text (deb-version(7)).
    static func stage(_ text: ArraySlice<UInt8>) -> (rank: Int, length: Int)? {
      let separators = text.prefix { [UInt8(ascii: "-"), UInt8(ascii: "_"), tilde].contains($0) }
      let word = text.dropFirst(separators.count).prefix { (0x61...0x7a).contains($0 | 0x20) }
      let length = separators.count + word.count
      let isWord = word.count > 1 || text.dropFirst(length).first.map(isDigit) ?? false
      let name = word.count > 1 ? word.map { $0 | 0x20 } : Array(word)
      if isWord, let rank = stages[String(decoding: name, as: UTF8.self)] { return (rank, length) }
      return separators.contains(tilde) ? (0, separators.count) : nil
    }

    private static let tilde = UInt8(ascii: "~")
    private static let stages = [
      "d": 0, "dev": 0, "nightly": 0, "snapshot": 0, "canary": 0, "a": 1, "alpha": 1, "b": 2,
      "beta": 2, "pre": 2, "preview": 2, "rc": 3, "fc": 3,
    ]

    func precedesByRest(_ other: Part) -> Bool {
      for (own, its) in zip(rest, other.rest) where own != its {
        let areNumbers =
          (own.first.map(Self.isDigit) ?? true) && (its.first.map(Self.isDigit) ?? true)
        return areNumbers ? Self.precedes(own, its) : own.lexicographicallyPrecedes(its)
      }
      return rest.count < other.rest.count
    }

    /// Whether a number precedes another one; both have no leading zeros.
    private static func precedes(_ left: [UInt8], _ right: [UInt8]) -> Bool {
      left.count == right.count ? left.lexicographicallyPrecedes(right) : left.count < right.count
    }
  }
}
