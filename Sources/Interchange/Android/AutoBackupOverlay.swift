internal import Codecs
package import SystemIO

extension AutoBackupRuleSet {
  /// Whether a file can be one of rules, by its first bytes: a package, or XML as text or in binary
  /// form. No policy begins like these.
  package static func begins(_ bytes: some Sequence<UInt8>) -> Bool {
    let start = Array(bytes.prefix(8))
    return start.starts(with: Array("PK\u{3}\u{4}".utf8)) || start.starts(with: [3, 0, 8, 0])
      || start.starts(with: [0xef, 0xbb, 0xbf, UInt8(ascii: "<")])
      || start.drop { $0 <= UInt8(ascii: " ") }.first == UInt8(ascii: "<")
  }

  /// Returns the rules as an overlay for policies of the layout `android`: those of a package for
  /// its app, those of an XML file for all apps.
  ///
  /// The overlay excludes and includes what a backup to the cloud does (`decision`). A policy has
  /// no order of domains, so the rules are in an order in which the last that matches decides.
  /// Rules for other storages than the app's directory have no container there.
  ///
  /// - Parameter file: The name of the file, for the sources of the rules.
  package func overlay(of file: ByteString) -> String {
    let name = file.lastComponent?.description ?? ""
    var lines = ["overlay: [android]", "schema: 1"]
    if let general = rules(of: "") {
      lines.append("rules:")
      lines += general.policyRules(of: name).flatMap { $0.lines(indentedBy: 2) }
    }
    if !packages.isEmpty { lines.append("apps:") }
    for (package, found) in packages.sorted(by: { $0.key < $1.key }) {
      lines.append("  \(PolicyText.quoted(package.description)):")
      lines.append("    rules:")
      lines += found.rules.policyRules(of: name).flatMap { $0.lines(indentedBy: 6) }
    }
    return lines.joined(separator: "\n") + "\n"
  }
}

extension AutoBackupRules {
  /// Returns the rules of a backup to the cloud as those of a policy.
  fileprivate func policyRules(of file: String) -> [PolicyText] {
    let transport = Destination.cloud.usualTransport
    let section: Section
    switch allowsBackup ? scheme(of: .cloud) : .disabled {
    case .disabled:
      return [.init("disabled", nil, why: "the app permits no backups", in: file)]
    case .everything: section = Section()
    case .rules(let found): section = found
    }
    if section.requiresEncryption, !transport.contains(.clientSideEncryption) {
      return [.init("disabled", nil, why: "the app permits encrypted backups only", in: file)]
    }
    var rules: [PolicyText] = []
    if !section.includes.isEmpty {
      rules.append(
        .init(
          "not-included", nil, why: "the rules of Auto Backup include other paths only", in: file))
    }
    let includes = section.includes.filter { rule in
      rule.isOfApp && transport.isSuperset(of: rule.required)
        && !(rule.domain == .root && rule.location.path.count == 1
          && Self.domains.contains(rule.location.path[0]))
    }
    // A rule for the whole directory does not include those that have a domain of their own.
    for (number, rule) in includes.enumerated() where rule.location.path.isEmpty {
      rules.append(Self.included(rule, number, in: file))
      rules += Self.domains.map { name in
        .init(
          "domain-\(number + 1)-\(name)", excluding: [name], why: "it has a domain of its own",
          in: file)
      }
    }
    func add(_ isAdded: ([ByteString]) -> Bool) {
      for (number, rule) in includes.enumerated() where isAdded(rule.location.path) {
        rules.append(Self.included(rule, number, in: file))
      }
    }
    add { $0.count == 1 }
    rules += Self.uselessDirectories.sorted().map { name in
      .init(
        "system-\(name)", excluding: [name], why: "no backup of Android to the cloud has it",
        in: file)
    }
    // Within a directory of the system, a rule for a path is observed.
    add { $0.count > 1 }
    for (number, rule) in section.excludes.enumerated() where rule.isOfApp {
      rules.append(
        .init("exclude-\(number + 1)", rule, why: "Auto Backup excludes it", in: file))
    }
    // A policy with a rule that a later one always overrides is refused.
    return rules.indices.filter { index in
      !rules[(index + 1)...].contains { rules[index].path.starts(with: $0.path) }
    }.map { rules[$0] }
  }

  private static func included(_ rule: Rule, _ number: Int, in file: String) -> PolicyText {
    .init(
      "include-\(number + 1)", rule, isIncluded: true, why: "Auto Backup includes it", in: file)
  }

  /// The directories with a domain of their own.
  private static let domains = AutoBackupDomain.allCases
    .filter { $0.storage == .credentialProtected }.compactMap(\.directory.first)
}

extension AutoBackupRules.Rule {
  /// Whether it names a path in the app's directory, which is its container.
  fileprivate var isOfApp: Bool { location.storage == .credentialProtected }
}

/// A rule of a policy as text.
private struct PolicyText {
  private let id: String
  fileprivate let path: [ByteString]
  private let isIncluded: Bool
  private let why: String
  private let source: String

  /// Creates the policy's rule for a rule, or for the whole container.
  init(
    _ id: String, _ rule: AutoBackupRules.Rule?, isIncluded: Bool = false, why: String,
    in file: String
  ) {
    (self.id, self.isIncluded, self.why) = (id, isIncluded, why)
    path = rule?.location.path ?? []
    switch rule?.position {
    case .mark(let mark): source = "\(file), line \(mark.line)"
    case .offset(let offset): source = "\(file), byte \(offset)"
    case nil: source = file
    }
  }

  /// Creates a rule that excludes a directory of the system.
  init(_ id: String, excluding path: [ByteString], why: String, in file: String) {
    (self.id, self.path, self.why) = (id, path, why)
    (isIncluded, source) = (false, "\(file); AOSP, FullBackup.java and BackupAgent.java")
  }

  func lines(indentedBy count: Int) -> [String] {
    let indent = String(repeating: " ", count: count)
    let pattern = (path.map(Self.escaped) + ["**"]).joined(separator: "/")
    return [
      "\(indent)- id: \(id)", "\(indent)  in: [data]",
      "\(indent)  match: \(Self.quoted(pattern))",
      "\(indent)  backup: \(isIncluded ? "always" : "never")",
      "\(indent)  why: \(Self.quoted(why))", "\(indent)  source: \(Self.quoted(source))",
    ]
  }

  /// Returns a name as a component of a pattern that matches only it.
  private static func escaped(_ name: ByteString) -> String {
    var text = ""
    for character in String(decoding: name.bytes, as: UTF8.self).unicodeScalars {
      if "*?[]{}\\,".unicodeScalars.contains(character) { text += "\\" }
      text.unicodeScalars.append(character)
    }
    return text
  }

  /// Returns a text in double quotes, as in YAML 1.2, section 7.3.1.
  static func quoted(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": quoted += "\\\(scalar)"
      case _ where scalar.value < 0x20 || (0x7f...0x9f).contains(scalar.value):
        let digits = String(scalar.value, radix: 16)
        quoted += "\\x" + (digits.count < 2 ? "0" : "") + digits
      // The line separators would become spaces; the others are not characters of YAML (5.1, 5.2).
      case "\u{2028}", "\u{2029}", "\u{feff}", "\u{fffe}", "\u{ffff}":
        quoted += "\\u" + String(scalar.value, radix: 16)
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted + "\""
  }
}
