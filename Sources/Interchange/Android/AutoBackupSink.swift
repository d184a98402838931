package import SystemIO

/// Writes an Android backup of the data that Auto Backup would store: the entries that an app's
/// rules include. Apps without rules are written completely.
package final class AutoBackupSink: EntrySink {
  private let writer: AndroidBackupWriter
  private let rules: AutoBackupRuleSet
  private let destination: AutoBackupRules.Destination
  private var isExcluding = false
  /// The entries that the rules exclude.
  package private(set) var exclusions = AutoBackupExclusions()
  /// The bytes of archive of each app with rules.
  private var sizes: [ByteString: UInt64] = [:]

  /// Begins the backup.
  package init(
    to writer: AndroidBackupWriter, rules: AutoBackupRuleSet,
    for destination: AutoBackupRules.Destination
  ) {
    (self.writer, self.rules, self.destination) = (writer, rules, destination)
  }

  package var skipped: SkippedEntries { writer.skipped }
  package let holdsHardLinks = false

  /// The packages that Android will not restore because their certificates are unknown, sorted.
  package var unrestorablePackages: [ByteString] { writer.unrestorablePackages }

  /// The apps with more data than Android stores in the cloud, with their bytes of archive, sorted.
  package var appsOverQuota: [(name: ByteString, size: UInt64)] {
    guard destination == .cloud else { return [] }
    return sizes.filter { $0.value > AutoBackupQuota.bytes }.sorted { $0.key < $1.key }
      .map { (name: $0.key, size: $0.value) }
  }

  package func add(_ entry: ForeignEntry) throws(InterchangeError) {
    isExcluding = excludes(entry)
    if !isExcluding { try writer.add(entry) }
  }

  package func write(_ bytes: UnsafeRawBufferPointer) throws(InterchangeError) {
    if !isExcluding { try writer.write(bytes) }
  }

  package func finish() throws(InterchangeError) { try writer.finish() }

  /// Whether the rules of its app exclude an entry, which is then recorded. Entries that an Android
  /// backup cannot hold are left to the writer.
  private func excludes(_ entry: ForeignEntry) -> Bool {
    guard let stored = (try? AndroidBackupPath.stored(entry.path)) ?? nil,
      let package = stored.package, let rules = rules.rules(of: package)
    else { return false }
    if stored.token.isEmpty {
      return excludesManifest(entry, of: rules)
    }
    guard let location = stored.location else {
      // The directory of a tree of the backup is not an entry of it.
      if stored.inner.isEmpty { return false }
      exclusions.append(entry, below: stored.inner.count, reason: "Auto Backup does not store it")
      return true
    }
    if case .excluded(let reason) = rules.decision(for: location, to: destination) {
      if entry.kind == .directory, stored.inner.isEmpty { return false }
      exclusions.append(entry, below: reason.depth(below: location), reason: reason.clause)
      return true
    }
    if entry.kind != .directory || !stored.inner.isEmpty {
      sizes[package, default: 0] += Self.size(of: entry, at: stored)
    }
    return false
  }

  /// Whether there is no backup that a manifest could begin.
  private func excludesManifest(_ entry: ForeignEntry, of rules: AutoBackupRules) -> Bool {
    let root = AutoBackupLocation(.credentialProtected, [])
    guard case .excluded(let reason) = rules.decision(for: root, to: destination) else {
      return false
    }
    guard reason == .disabled || reason == .encryptionRequired else { return false }
    exclusions.append(entry, below: 1, reason: reason.clause)
    return true
  }

  /// Returns the bytes that an entry takes of the quota.
  private static func size(
    of entry: ForeignEntry, at place: AndroidBackupPath.Stored
  ) -> UInt64 {
    var size: UInt64 = 0
    if case .file(let bytes) = entry.kind { size = bytes }
    return AutoBackupQuota.size(
      package: place.package ?? "", token: place.token, path: place.inner, size: size)
  }
}

extension AndroidBackupPath.Stored {
  /// The location in the app's storage; nil for data that Auto Backup does not store: the package
  /// itself, its expansion files, key-value data and additions of other programs.
  var location: AutoBackupLocation? {
    guard let tree = AndroidBackupPath.autoBackupTrees[token] else { return nil }
    return AutoBackupLocation(tree.storage, tree.path + inner)
  }
}
