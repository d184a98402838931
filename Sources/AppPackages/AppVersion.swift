package import SandboxModel
package import SystemIO

/// A version and a build of a bundle, ordered as numbers separated by dots; a missing number counts
/// as 0 (Information Property List Key Reference, CFBundleShortVersionString and CFBundleVersion).
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

  private static func precedes(_ left: ByteString, _ right: ByteString) -> Bool {
    let (left, right) = (parts(left), parts(right))
    for index in 0..<max(left.count, right.count) {
      let own = index < left.count ? left[index] : Part()
      let its = index < right.count ? right[index] : Part()
      if own != its { return own < its }
    }
    return false
  }

  private static func parts(_ text: ByteString) -> [Part] {
    text.bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map(Part.init)
  }

  /// A component between two dots, ordered by its number, then by the rest.
  private struct Part: Hashable, Comparable {
    var digits: [UInt8] = []
    var rest: [UInt8] = []

    init() {}

    init(_ bytes: ArraySlice<UInt8>) {
      let number = bytes.prefix { (0x30...0x39).contains($0) }
      digits = Array(number.drop { $0 == 0x30 })
      rest = Array(bytes.dropFirst(number.count))
    }

    static func < (left: Part, right: Part) -> Bool {
      if left.digits.count != right.digits.count { return left.digits.count < right.digits.count }
      if left.digits != right.digits { return left.digits.lexicographicallyPrecedes(right.digits) }
      return left.rest.lexicographicallyPrecedes(right.rest)
    }
  }
}
