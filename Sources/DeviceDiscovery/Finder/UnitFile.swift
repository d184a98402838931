internal import Codecs
internal import SandboxModel
package import SystemIO

/// A unit file or drop-in: its assignments to the settings that name directories
/// (systemd.syntax(7), systemd.exec(5)). All other settings are ignored.
package struct UnitFile: Sendable {
  /// The limits for a file and for the settings of a unit.
  enum Limit {
    static let assignments = 1000
    static let directories = 64
    /// The length of a directory's path in bytes (Linux, PATH_MAX).
    static let path = 4096
  }

  /// A setting that names directories.
  enum Purpose: String, CaseIterable, Sendable {
    case state = "StateDirectory"
    case cache = "CacheDirectory"
    case logs = "LogsDirectory"
    case config = "ConfigurationDirectory"
    case runtime = "RuntimeDirectory"
  }

  /// An assignment to a setting.
  enum Assignment: Equatable, Sendable {
    /// Adds directories as written; an empty list removes the earlier ones.
    case directories(Purpose, [ByteString])
    /// Whether the unit runs as a user that exists only while the unit runs, with its directories
    /// in `private`.
    case dynamicUser(Bool)
    /// The description for display, or nil for none.
    case title(ByteString?)
  }

  /// The assignments, in their order.
  private(set) var assignments: [Assignment] = []
  /// The number of assignments and directories above the limits.
  private(set) var omitted = 0

  /// Parses a file. Lines that are not assignments are ignored, as by systemd.
  package init(_ bytes: [UInt8]) {
    var section: ByteString = ""
    for line in Self.lines(of: bytes) {
      let text = line[...].trimmed
      if text.first == UInt8(ascii: "["), text.last == UInt8(ascii: "]") {
        section = ByteString(text.dropFirst().dropLast())
      } else if let equals = text.firstIndex(of: UInt8(ascii: "=")) {
        add(ByteString(text[..<equals].trimmed), text[(equals + 1)...].trimmed, in: section)
      }
    }
  }

  /// The sections whose settings apply to the processes of a unit.
  private static let processSections: Set<ByteString> = ["Service", "Socket", "Mount", "Swap"]

  private mutating func add(
    _ key: ByteString, _ value: ArraySlice<UInt8>, in section: ByteString
  ) {
    let isProcess = Self.processSections.contains(section)
    if section == "Unit", key == "Description" {
      append(.title(value.isEmpty ? nil : ByteString(value)))
    } else if isProcess, key == "DynamicUser" {
      append(.dynamicUser(Self.isTrue(ByteString(value))))
    } else if isProcess,
      let purpose = Purpose.allCases.first(where: { ByteString($0.rawValue) == key })
    {
      let words = Self.words(of: value)
      append(.directories(purpose, Array(words.prefix(Limit.directories))))
      omitted += max(words.count - Limit.directories, 0)
    }
  }

  private mutating func append(_ assignment: Assignment) {
    if assignments.count < Limit.assignments {
      assignments.append(assignment)
    } else {
      omitted += 1
    }
  }

  private static func isTrue(_ value: ByteString) -> Bool {
    (["1", "yes", "true", "on", "y", "t"] as [ByteString]).contains(value.folded)
  }
}

/// The settings of a unit that name directories, from its file and drop-ins.
struct UnitSettings: Sendable {
  /// A directory as written, not yet expanded.
  struct Word: Hashable, Sendable {
    let purpose: UnitFile.Purpose
    let text: ByteString
  }

  /// The directories, in their order.
  private(set) var words: [Word] = []
  /// The number of directories and assignments above the limits.
  private(set) var omitted = 0
  private(set) var isDynamicUser = false
  /// The number of assignments applied.
  private var applied = 0
  private(set) var title: ByteString?

  /// Applies a file over the settings of the files before it.
  mutating func apply(_ file: UnitFile) {
    omitted += file.omitted
    let allowed = file.assignments.prefix(max(UnitFile.Limit.assignments - applied, 0))
    applied += allowed.count
    omitted += file.assignments.count - allowed.count
    for assignment in allowed {
      switch assignment {
      case .title(let text): title = text
      case .dynamicUser(let value): isDynamicUser = value
      case .directories(let purpose, let texts):
        if texts.isEmpty { words.removeAll { $0.purpose == purpose } }
        let room = max(UnitFile.Limit.directories - words.count, 0)
        words += texts.prefix(room).map { Word(purpose: purpose, text: $0) }
        omitted += max(texts.count - room, 0)
      }
    }
  }
}

// MARK: - Syntax

extension UnitFile {
  private static let backslash = UInt8(ascii: "\\")

  /// Returns the lines without comments. A line that ends with a backslash continues in the next
  /// one that is not a comment.
  private static func lines(of bytes: [UInt8]) -> [[UInt8]] {
    var (lines, open) = ([[UInt8]](), [UInt8]())
    for line in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
      let start = line.trimmed.first
      if start == UInt8(ascii: "#") || start == UInt8(ascii: ";") { continue }
      let ending = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
      if ending.last == backslash {
        open += ending.dropLast() + [UInt8(ascii: " ")]
      } else {
        lines.append(open + ending)
        open = []
      }
    }
    return open.isEmpty ? lines : lines + [open]
  }

  /// Returns the words of a value, without their quotes. A backslash and the byte after it are
  /// unchanged.
  static func words(of value: ArraySlice<UInt8>) -> [ByteString] {
    var (words, word, quote, isOpen) = ([ByteString](), [UInt8](), nil as UInt8?, false)
    var rest = value
    while let byte = rest.popFirst() {
      if byte == backslash {
        word.append(byte)
        if let next = rest.popFirst() { word.append(next) }
        isOpen = true
      } else if byte == quote {
        quote = nil
      } else if quote == nil, byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
        (quote, isOpen) = (byte, true)
      } else if quote == nil, byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") {
        if isOpen { words.append(ByteString(word)) }
        (word, isOpen) = ([], false)
      } else {
        word.append(byte)
        isOpen = true
      }
    }
    return isOpen ? words + [ByteString(word)] : words
  }
}

// MARK: - Directories of a unit

extension UnitFile {
  /// The path of a directory below the base directory of its purpose, or the reason why a word does
  /// not name one.
  enum Path: Equatable {
    case path(ByteString)
    case unusable(String)
  }

  /// Returns the path that a word names: its part before an unescaped colon, after which links and
  /// flags follow, with the specifiers of the unit's name expanded.
  static func path(_ word: ByteString, of unit: UnitName) -> Path {
    var (path, rest) = ([UInt8](), word.bytes)
    while let byte = rest.popFirst(), byte != UInt8(ascii: ":") {
      switch byte {
      case backslash:
        guard let next = rest.popFirst() else { return .unusable("it ends with a backslash") }
        path.append(next)
      case UInt8(ascii: "%"):
        guard let letter = rest.popFirst() else { return .unusable("it ends with '%'") }
        guard let text = unit.expansion(of: letter) else {
          return .unusable("its specifier '\(ByteString([byte, letter]))' is not expanded")
        }
        path += text.bytes
      default: path.append(byte)
      }
    }
    return checked(ByteString(path))
  }

  private static func checked(_ path: ByteString) -> Path {
    if path.isAbsolute { return .unusable("it is absolute") }
    if path.count >= Limit.path { return .unusable("it is too long") }
    let parts = path.bytes.split(separator: ByteString.slash).map { ByteString($0) }
      .filter { $0 != "." }
    guard let first = parts.first else { return .unusable("it is empty") }
    // systemd keeps dynamic users' directories there (systemd.exec(5)).
    if first == "private" { return .unusable("'private' is reserved") }
    for part in parts {
      if let fault = part.nameFault { return .unusable("its component '\(part)': \(fault)") }
      if OwnNames.has(part) { return .unusable("'\(part)' is a name of this program") }
    }
    return .path(ByteString(joining: parts))
  }
}

/// The name of a unit and its parts (systemd.unit(5)): `prefix@instance.service`.
package struct UnitName: Hashable, Sendable {
  /// The types whose settings can name directories.
  private static let types: [ByteString] = ["service", "socket", "mount", "swap"]
  /// The maximum length in bytes.
  private static let maximumLength = 255

  let name: ByteString
  let prefix: ByteString
  /// The instance; empty for a template, nil for a unit that is not an instance.
  let instance: ByteString?
  let type: ByteString

  /// Parses a name; nil if it is not a unit's, or if the type has no directories.
  package init?(_ name: ByteString) {
    guard name.count <= Self.maximumLength, name.bytes.allSatisfy(Self.isAllowed),
      let dot = name.bytes.lastIndex(of: UInt8(ascii: ".")), dot > name.bytes.startIndex
    else { return nil }
    type = ByteString(name.bytes[(dot + 1)...])
    guard Self.types.contains(type) else { return nil }
    let stem = name.bytes[..<dot]
    let at = stem.firstIndex(of: UInt8(ascii: "@"))
    guard at != stem.startIndex else { return nil }
    prefix = ByteString(stem[..<(at ?? stem.endIndex)])
    instance = at.map { ByteString(stem[($0 + 1)...]) }
    self.name = name
  }

  private static func isAllowed(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: ":-_.\\@".utf8.contains(byte)
    }
  }

  /// The name without its type.
  var stem: ByteString { ByteString(name.bytes.dropLast(type.count + 1)) }

  var isTemplate: Bool { instance?.isEmpty == true }

  /// The name of an instance's template, or nil.
  var template: ByteString? {
    guard let instance, !instance.isEmpty else { return nil }
    return prefix.concatenating("@.").concatenating(type)
  }

  /// The text of a specifier, or nil if it depends on more than the unit's name, or on an unknown
  /// instance.
  func expansion(of letter: UInt8) -> ByteString? {
    switch letter {
    case UInt8(ascii: "%"): "%"
    case UInt8(ascii: "n"): isTemplate ? nil : name
    case UInt8(ascii: "N"): isTemplate ? nil : stem
    case UInt8(ascii: "p"): prefix
    case UInt8(ascii: "i"): isTemplate ? nil : instance ?? ""
    case UInt8(ascii: "j"):
      ByteString(prefix.bytes.split(separator: UInt8(ascii: "-")).last ?? prefix.bytes)
    default: nil
    }
  }

  /// The names of the directories with drop-ins for the unit, in descending order of precedence:
  /// its own, those of its template and of its name up to each hyphen, and that of its type.
  var dropInDirectories: [ByteString] {
    var names = [name] + (template.map { [$0] } ?? [])
    let end = ByteString(".").concatenating(type)
    for index in prefix.bytes.indices.reversed() where prefix.bytes[index] == UInt8(ascii: "-") {
      let part = ByteString(prefix.bytes[...index])
      if part != prefix || instance != nil { names.append(part.concatenating(end)) }
    }
    return (names + [type]).map { $0.concatenating(".d") }
  }
}
