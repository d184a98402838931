internal import Glibc

/// The version of a Linux kernel.
package struct KernelVersion: Sendable, Hashable, Comparable {
  package let major: Int
  package let minor: Int

  /// Creates a version.
  package init(_ major: Int, _ minor: Int) { (self.major, self.minor) = (major, minor) }

  /// Parses a release such as `6.1.0-18-amd64`; nil if it does not begin with two numbers.
  package init?(release: some StringProtocol) {
    let numbers = release.split(separator: ".", maxSplits: 2).prefix(2)
      .map { $0.prefix { ("0"..."9").contains($0) } }
    guard numbers.count == 2, let major = Int(numbers[0]), let minor = Int(numbers[1])
    else { return nil }
    self.init(major, minor)
  }

  package static func < (left: KernelVersion, right: KernelVersion) -> Bool {
    (left.major, left.minor) < (right.major, right.minor)
  }

  /// Whether syncfs(2) reports write errors of the volume (since Linux 5.8).
  package var reportsErrorsOfVolumeSync: Bool { self >= KernelVersion(5, 8) }
}

extension Host {
  /// The version of the running kernel, or nil if its release cannot be parsed.
  package static let kernelVersion: KernelVersion? = {
    var names = utsname()
    guard unsafe uname(&names) == 0 else { return nil }
    let release = unsafe withUnsafeBytes(of: &names.release) {
      unsafe String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
    }
    return KernelVersion(release: release)
  }()
}
