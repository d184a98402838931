package import Codecs
internal import SystemIO

/// A part of a file of rules that Android ignores, or applies to something other than it seems. The
/// rest of the file is valid.
///
/// Source: AOSP, `FullBackup.java` (`parseRules`, `extractCanonicalFile`,
/// `getDirectoryForCriteriaDomain`, `getRequiredFlagsFromString`).
package struct AutoBackupRemark: Hashable, Sendable {
  /// The element, as in the file: `<include domain="file" path="a"/>`.
  package let rule: String
  package let problem: Problem
  /// The position of the element in its file.
  package let position: CodecError.Position

  /// The problem of an element.
  package enum Problem: Error, Hashable, Sendable {
    case noDomain
    case unknownDomain(String)
    /// A path with `..`.
    case parentPath
    /// A path with `//`.
    case doubleSlash
    case emptyPath
    /// A path that begins with `/`.
    case absolutePath
    case unknownFlags([String])
    /// `requireFlags` where Android does not read it.
    case unreadFlags
    case unknownAttribute(String)
    /// A rule in `data-extraction-rules`, but in none of its sections.
    case outsideSection
    case unknownSection(String)
    /// `disableIfNoEncryptionCapabilities` for transfers.
    case encryptionOfTransfer
    /// A directory of the domain `root` that is another domain.
    case otherDomain(String)
    /// A directory that Android never stores in the cloud.
    case systemDirectory(String)
    /// An `exclude` for a path that no `include` names.
    case notIncluded
  }

  init(_ problem: Problem, _ element: AndroidXML) {
    (self.problem, rule, position) = (problem, element.tag, element.position)
  }
}

extension AutoBackupRemark.Problem {
  /// The problem and what Android does, as a clause.
  package var clause: String {
    switch self {
    case .noDomain: "it has no domain: Android ignores the rule"
    case .unknownDomain(let name):
      "the domain \(name.shown) is unknown: Android ignores the rule"
    case .parentPath: "the path contains '..': Android ignores the rule"
    case .doubleSlash: "the path contains '//': Android ignores the rule"
    case .emptyPath: "the path is empty: Android applies the rule to the whole domain"
    case .absolutePath:
      "the path is absolute: Android ignores the slash and applies the rule below the domain"
    case .unknownFlags(let names):
      "the flags \(names.map(\.shown).joined(separator: ", ")) are unknown: Android ignores them, "
        + "so the rule holds without them"
    case .unreadFlags: "Android does not read 'requireFlags' here, so the rule always holds"
    case .unknownAttribute(let name):
      "the attribute \(name.shown) is unknown: Android ignores it"
    case .outsideSection:
      "it is in no section ('cloud-backup' or 'device-transfer'): Android ignores the rule"
    case .unknownSection(let name):
      "the section \(name.shown) is unknown: Android ignores its rules"
    case .encryptionOfTransfer:
      "Android reads 'disableIfNoEncryptionCapabilities' only in 'cloud-backup'"
    case .otherDomain(let name):
      "the directory \(name.shown) is another domain: Android ignores the rule; name that domain"
    case .systemDirectory(let name):
      "no backup to the cloud has the directory \(name.shown): Android ignores the rule there"
    case .notIncluded:
      "no rule includes this path or one below it: the rule has no effect"
    }
  }
}

extension String {
  /// The text in quotes, escaped and of a limited length: it is the file's.
  fileprivate var shown: String { "'\(ByteString(String(prefix(100))).description)'" }
}

extension AndroidXML {
  /// The element's start as text, without namespaces and of a limited length.
  fileprivate var tag: String {
    let attributes = ownAttributes.prefix(4).map { " \($0.name)=\"\($0.value.prefix(200))\"" }
    return ByteString("<\(name.prefix(100))\(attributes.joined())/>").description
  }

  /// All elements below it in the order of the file.
  var descendants: [AndroidXML] { children.flatMap { [$0] + $0.descendants } }
}

extension AutoBackupRemark {
  /// Returns remarks on the attributes of a rule that do not make Android ignore it.
  ///
  /// - Parameter hasFlags: Whether Android reads `requireFlags` of the rule.
  static func ofAttributes(of element: AndroidXML, hasFlags: Bool) -> [AutoBackupRemark] {
    var problems: [Problem] = []
    if let path = element.value("path") {
      if path.isEmpty { problems.append(.emptyPath) }
      if path.hasPrefix("/"), !path.hasPrefix("//") { problems.append(.absolutePath) }
    }
    if let flags = element.value("requireFlags") {
      if !hasFlags {
        problems.append(.unreadFlags)
      } else {
        let unknown = flags.split(separator: "|").map(String.init)
          .filter { AutoBackupTransport.names[$0] == nil }
        if !unknown.isEmpty { problems.append(.unknownFlags(unknown)) }
      }
    }
    let known = ["domain", "path", "requireFlags"]
    problems += element.ownAttributes
      .filter { !$0.namespace.isEmpty || !known.contains($0.name) }
      .map { .unknownAttribute($0.name) }
    return problems.map { AutoBackupRemark($0, element) }
  }

  /// Returns remarks on an `include` for a directory that Android does not store as a part of its
  /// domain. Paths within such a directory are included.
  static func ofDirectory(
    _ path: [ByteString], in domain: AutoBackupDomain, _ element: AndroidXML
  ) -> [AutoBackupRemark] {
    guard domain.isRoot, path.count == 1 else { return [] }
    let name = path[0].description
    if AutoBackupDomain.allCases.contains(where: { $0.directory == path }) {
      return [AutoBackupRemark(.otherDomain(name), element)]
    }
    return AutoBackupRules.uselessDirectories.contains(path[0])
      ? [AutoBackupRemark(.systemDirectory(name), element)] : []
  }

  /// Returns remarks on the elements of `data-extraction-rules`: rules outside of a section, and
  /// sections that Android does not know. A `cross-platform-transfer` is for devices of other
  /// platforms.
  static func ofSections(in root: AndroidXML) -> [AutoBackupRemark] {
    root.children.compactMap { element -> AutoBackupRemark? in
      switch element.name {
      case AutoBackupRules.Destination.cloud.rawValue, "cross-platform-transfer": nil
      case AutoBackupRules.Destination.transfer.rawValue:
        element.value("disableIfNoEncryptionCapabilities") == nil
          ? nil : AutoBackupRemark(.encryptionOfTransfer, element)
      case "include", "exclude": AutoBackupRemark(.outsideSection, element)
      default: AutoBackupRemark(.unknownSection(element.name), element)
      }
    }
  }
}

extension AutoBackupRules {
  /// The remarks on the files of the rules, by their order.
  package var remarks: [AutoBackupRemark] {
    var remarks: [AutoBackupRemark] = []
    if case .rules(let section) = fullBackup { remarks += section.remarks }
    if let extraction {
      remarks += extraction.remarks
      remarks += extraction.cloud?.remarks ?? []
      remarks += extraction.transfer?.remarks ?? []
    }
    return remarks
  }
}

/// Locations, to determine whether one of them is at, above or below another location.
struct AutoBackupPathSet {
  private let paths: Set<AutoBackupLocation>
  private let parents: Set<AutoBackupLocation>

  init(_ locations: [AutoBackupLocation]) {
    paths = Set(locations.map { Self.prefix($0, Self.depth) })
    parents = Set(locations.flatMap(Self.prefixes))
  }

  /// Whether one of the locations is at, above or below a location. Only the first components of
  /// longer paths, which a file of rules can have without limit, are compared.
  func touches(_ location: AutoBackupLocation) -> Bool {
    parents.contains(Self.prefix(location, Self.depth))
      || Self.prefixes(of: location).contains(where: paths.contains)
  }

  private static let depth = 32

  /// Returns the location and those above it.
  private static func prefixes(of location: AutoBackupLocation) -> [AutoBackupLocation] {
    (0...min(location.path.count, depth)).map { prefix(location, $0) }
  }

  private static func prefix(_ location: AutoBackupLocation, _ count: Int) -> AutoBackupLocation {
    AutoBackupLocation(location.storage, Array(location.path.prefix(count)))
  }
}
