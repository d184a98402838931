package import AppPackages
package import SystemIO

/// The Debian packages that a system has installed, with the versions of their programs.
///
/// Read from dpkg's status file (dpkg(1), FILES; deb-control(5)). A version is the upstream version
/// without epoch, revision and the distribution's marks (deb-version(7)): its numbers and a stage
/// before a release, such as `~rc1`. Only in this form can it be compared with that of a Flatpak or
/// the one that data states.
package struct DebianPackages: Sendable {
  /// The versions by name of package.
  package private(set) var versions: [ByteString: AppVersion] = [:]

  /// The path of the status file in a system.
  package static let statusFile: ByteString = "var/lib/dpkg/status"
  /// The maximum size of the status file, in bytes.
  package static let maximumSize = 256 << 20

  /// Reads the packages of the system to which a home directory belongs: the nearest directory
  /// above it with a status file. Returns nil if there is none, or if it cannot be read.
  ///
  /// - Parameter home: The home directory, an absolute path without links.
  package init?(ofHome home: ByteString) {
    var above = home
    while above != "/", !above.isEmpty {
      above = above.parent.isEmpty ? "/" : above.parent
      guard let file = try? Descriptor.open(path: above.appending(Self.statusFile)) else {
        continue
      }
      guard let bytes = try? file.readAll(limit: Self.maximumSize) else { return nil }
      self.init(parsing: bytes)
      return
    }
    return nil
  }

  /// Parses a status file. Paragraphs without a name or version, and packages that are not
  /// installed, are ignored; of several paragraphs for a package (architectures) the first is used.
  package init(parsing bytes: [UInt8]) {
    var paragraph = Paragraph()
    for line in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
      if line.isEmpty {
        add(paragraph)
        paragraph = Paragraph()
      } else {
        paragraph.read(line)
      }
    }
    add(paragraph)
  }

  private mutating func add(_ paragraph: Paragraph) {
    guard paragraph.isInstalled, let name = paragraph.name, versions[name] == nil,
      let version = paragraph.version.flatMap(Self.upstream)
    else { return }
    versions[name] = AppVersion(version: version, build: nil)
  }

  /// Returns the numbers of the upstream version with a stage before a release, or nil if there are
  /// none or the package only installs a snap: Ubuntu gives such packages the version `1snap1`.
  static func upstream(_ text: ByteString) -> ByteString? {
    let (version, word) = (withoutRevision(text), Array("snap".utf8))
    // Followed by a number: not `git20240102snapshot`.
    let isOfSnap = version.indices.contains { at in
      let rest = version[at...]
      return rest.starts(with: word)
        && rest.dropFirst(word.count).first.map { digits.contains($0) } ?? true
    }
    return isOfSnap ? nil : numbers(of: text)
  }

  /// Returns the numbers of a package's version with a stage before a release, without epoch and
  /// revision; nil if it does not begin with a number.
  static func numbers(of text: ByteString) -> ByteString? {
    let version = withoutRevision(text)
    var numbers = version.prefix { digits.contains($0) || $0 == dot }
    let stage = version[numbers.endIndex...]
    while numbers.last == dot { numbers.removeLast() }
    if numbers.isEmpty || numbers.count > 64 { return nil }
    return ByteString(Array(numbers) + Self.known(stage))
  }

  /// Returns a version without epoch and revision. A stage after the last hyphen (`1.0-beta1`) is
  /// not a revision.
  private static func withoutRevision(_ text: ByteString) -> ArraySlice<UInt8> {
    var version = text.bytes[...]
    if let colon = version.firstIndex(of: UInt8(ascii: ":")) { version = version[(colon + 1)...] }
    if let hyphen = version.lastIndex(of: UInt8(ascii: "-")),
      AppVersion.stageLength(version[hyphen...]) == 0
    {
      version = version[..<hyphen]
    }
    return version
  }

  /// Returns the stage at the beginning of a text, with numbers after dots (`-beta.2`); `~deb12u1`
  /// and `~bpo12` are not stages.
  private static func known(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let length = AppVersion.stageLength(text)
    guard length > 1 else { return [] }
    var end = text.startIndex + length
    while text[end...].first == dot {
      let number = text[(end + 1)...].prefix { digits.contains($0) }
      if number.isEmpty { break }
      end = number.endIndex
    }
    return end - text.startIndex <= 32 ? text[..<end] : []
  }

  private static let (digits, dot) = (UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."))

  /// The fields of a paragraph that are needed.
  private struct Paragraph {
    var name: ByteString?
    var version: ByteString?
    var isInstalled = false

    /// Reads a line; further lines of a field, which begin with a space, are ignored.
    mutating func read(_ line: ArraySlice<UInt8>) {
      if let value = Self.value("Package:", of: line) {
        name = ByteString(value)
      } else if let value = Self.value("Version:", of: line) {
        version = ByteString(value)
      } else if let value = Self.value("Status:", of: line) {
        let state = value.split(separator: UInt8(ascii: " ")).last.map { ByteString($0) }
        isInstalled = state.map { Self.installed.contains($0) } ?? false
      }
    }

    /// The states of a package whose program can be used (dpkg(1), Package states).
    private static let installed: [ByteString] = [
      "installed", "triggers-awaited", "triggers-pending",
    ]

    private static func value(_ field: String, of line: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
      guard line.starts(with: field.utf8) else { return nil }
      let value = line.dropFirst(field.utf8.count).drop { $0 == 0x20 || $0 == 0x09 }
      return value.isEmpty ? nil : value
    }
  }
}
