package import SystemIO

extension AutoBackupRules {
  /// The destination of a backup.
  package enum Destination: String, CaseIterable, Hashable, Sendable {
    case cloud = "cloud-backup"
    case transfer = "device-transfer"

    /// The properties of the usual transport: the cloud's with encryption on the device, as since
    /// Android 9 on devices with a screen lock.
    package var usualTransport: AutoBackupTransport {
      self == .cloud ? .clientSideEncryption : .deviceToDevice
    }
  }

  /// The result for a path.
  package enum Decision: Hashable, Sendable {
    /// It is included, by a rule or because no rule includes anything else.
    case included(Rule?)
    case excluded(Reason)

    package var isIncluded: Bool { if case .included = self { true } else { false } }
  }

  /// The reason why a path is not included.
  package enum Reason: Hashable, Sendable {
    /// The app disables backups (`allowBackup`, `fullBackupContent`).
    case disabled
    /// The app wants backups only with encryption on the device.
    case encryptionRequired
    /// A rule excludes it or a directory above it.
    case rule(Rule)
    /// Rules include other paths only.
    case notIncluded
    /// A rule includes it only in backups with other properties.
    case flagsRequired(Rule)
    /// Android never includes this directory.
    case systemDirectory(ByteString)
  }

  /// The directories that no backup to the cloud has.
  static let uselessDirectories: Set<ByteString> = ["cache", "code_cache", "no_backup"]

  /// Returns whether a path is included in a backup, and why.
  ///
  /// The order is Android's: excluded paths win over included ones, and one `include` excludes
  /// everything that no other one names. In a backup to the cloud, what a rule excludes above an
  /// included path is excluded as well, since the restore refuses it; a transfer restores what it
  /// gets, and looks for excluded paths only from the included path downwards.
  ///
  /// Source: AOSP, `BackupAgent.java` (`onFullBackup`, `fullBackupFileTree`,
  /// `isFileEligibleForRestore`), `FullBackup.java` (`isFullBackupEnabled`).
  package func decision(
    for location: AutoBackupLocation, to destination: Destination,
    over transport: AutoBackupTransport? = nil
  ) -> Decision {
    let transport = transport ?? destination.usualTransport
    let isSeparate = destination == .transfer && targetVersion >= Self.separateTransfers
    if !allowsBackup && !isSeparate { return .excluded(.disabled) }
    switch scheme(of: destination, isSeparate: isSeparate) {
    case .disabled: return .excluded(.disabled)
    case .everything:
      return Walk(section: Section(), destination: destination, transport: transport)
        .decision(for: location)
    case .rules(let section):
      if section.requiresEncryption && !transport.contains(.clientSideEncryption) {
        return .excluded(.encryptionRequired)
      }
      return Walk(section: section, destination: destination, transport: transport)
        .decision(for: location)
    }
  }

  /// Returns the rules for a destination: those of the newer file if it has a section for it; for a
  /// transfer of a newer app none; otherwise the older file's.
  func scheme(of destination: Destination, isSeparate: Bool = false) -> FullBackup {
    let section = destination == .cloud ? extraction?.cloud : extraction?.transfer
    if let section { return .rules(section) }
    return isSeparate ? .everything : fullBackup
  }

  /// Android's walk through the directories of an app, for one path.
  private struct Walk {
    let section: Section
    let destination: Destination
    let transport: AutoBackupTransport

    func decision(for location: AutoBackupLocation) -> Decision {
      if destination == .cloud, let rule = exclusion(of: location, from: 0) {
        return .excluded(.rule(rule))
      }
      var found = Decision.excluded(.notIncluded)
      for domain in AutoBackupDomain.allCases where domain.storage == location.storage {
        let result = decision(for: location, in: domain)
        if result.isIncluded { return result }
        if case .excluded(.notIncluded) = found { found = result }
      }
      return found
    }

    private func decision(
      for location: AutoBackupLocation, in domain: AutoBackupDomain
    ) -> Decision {
      if section.includes.isEmpty {
        guard location.path.starts(with: domain.directory) else { return .excluded(.notIncluded) }
        return walk(to: location, from: domain.directory.count, in: domain, by: nil)
      }
      var found = Decision.excluded(.notIncluded)
      for rule in section.includes
      where rule.domain == domain && location.path.starts(with: rule.location.path) {
        guard transport.isSuperset(of: rule.required) else {
          if case .excluded(.notIncluded) = found { found = .excluded(.flagsRequired(rule)) }
          continue
        }
        let result = walk(to: location, from: rule.location.path.count, in: domain, by: rule)
        if result.isIncluded { return result }
        found = result
      }
      return found
    }

    /// Walks from a directory, by its number of components, down to the location.
    private func walk(
      to location: AutoBackupLocation, from start: Int, in domain: AutoBackupDomain, by rule: Rule?
    ) -> Decision {
      if let rule = exclusion(of: location, from: start) { return .excluded(.rule(rule)) }
      if let name = location.path.first, start <= 1, isExcludedBySystem(name, in: domain) {
        return .excluded(.systemDirectory(name))
      }
      return .included(rule)
    }

    /// Returns a rule that excludes the location or a directory above it with at least `start`
    /// components.
    private func exclusion(of location: AutoBackupLocation, from start: Int) -> Rule? {
      section.excludes.first {
        $0.location.storage == location.storage && $0.location.path.count >= start
          && location.path.starts(with: $0.location.path)
      }
    }

    /// Whether Android skips a directory of the app's root: those with a domain of their own, and
    /// in backups to the cloud those for data that is not worth one.
    private func isExcludedBySystem(_ name: ByteString, in domain: AutoBackupDomain) -> Bool {
      if domain.storage == .external { return false }
      let hasDomain = AutoBackupDomain.allCases.contains { $0.directory == [name] }
      return domain.isRoot && hasDomain
        || destination == .cloud && AutoBackupRules.uselessDirectories.contains(name)
    }
  }
}
