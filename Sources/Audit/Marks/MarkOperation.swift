internal import DeviceDiscovery
internal import DeviceScan
package import PolicyEngine
package import SandboxModel
package import SystemIO

/// Sets or removes the marks of one entry of a device. An entry's content and modification time are
/// unchanged, except that removing a tag file changes its directory.
package struct MarkOperation {
  private let device: Device
  private let policy: CompiledPolicy
  private let container: Container
  /// The path in the container.
  private let inner: ByteString

  /// Prepares for an entry.
  ///
  /// - Throws: `ModelError` if no container of the device has the path.
  package init(
    _ path: LogicalPath, on device: Device, policy: CompiledPolicy
  ) throws(ModelError) {
    (container, inner) = try device.resolve(path)
    (self.device, self.policy) = (device, policy)
  }

  /// The result for one entry.
  package struct Outcome: Sendable {
    /// The logical path.
    package let path: ByteString
    /// The marks that were set or removed, by identifier; empty if none had to be.
    package let changed: [String]
    /// Whether a backup stores the entry afterwards; nil after a dry run.
    package let isStored: Bool?
    /// The logical paths above the entry whose marks still exclude it.
    package let stillMarked: [ByteString]
    package let dataClass: DataClass
    /// Whether the platform's own backup observes the mark.
    package let isOfPlatform: Bool
  }

  /// Sets the mark that the platform uses.
  ///
  /// - Throws: `OperationError` if the entry does not exist or cannot be marked, or if it is a
  ///   directory of the system and `force` is false.
  package func exclude(
    for destination: Destination, force: Bool, dryRun: Bool
  ) throws(OperationError) -> Outcome {
    guard let mark = BackupMark.usual(of: policy, in: container.kind, for: destination) else {
      throw failure(
        "mark", .layoutUnsupported, reason: "the policy '\(policy.name)' has no mark for such data",
        hint: "exclude it with '--exclude' or a rule in a policy file")
    }
    let kind = try kind("mark")
    if !force, kind == .directory,
      SystemDirectories.has(inner, in: container.kind, of: device.layout)
    {
      throw failure(
        "mark", .invalidTarget,
        reason: "it is a directory of the system, and the mark would cover everything in it",
        hint: "mark a directory below it, or use '--force'")
    }
    let isNew = try onEntry("mark") { directory, name throws(SystemError) in
      let attributes = name.map { directory.attributes(of: $0) } ?? directory.attributes
      if let value = try attributes.value(of: mark.attribute), mark.marker.accepts(value) {
        return false
      }
      if !dryRun { try attributes.set(mark.attribute, to: mark.value) }
      return true
    }
    return outcome(isNew ? [mark.marker.id] : [], isOfPlatform: mark.isOfPlatform, dryRun)
  }

  /// Removes all marks that exclude the entry from backups, and the tag file in a directory.
  ///
  /// - Throws: `OperationError` if the entry does not exist or a mark cannot be removed.
  package func include(dryRun: Bool) throws(OperationError) -> Outcome {
    let kind = try kind("remove the marks of")
    let markers = policy.markers.filter { $0.kinds.contains(container.kind) }
    let removed = try onEntry("remove the marks of") { directory, name throws(SystemError) in
      var removed: [String] = []
      for marker in markers
      where try Self.remove(marker, from: name, kind, in: directory, dryRun: dryRun) {
        removed.append(marker.id)
      }
      return removed
    }
    return outcome(removed, isOfPlatform: true, dryRun)
  }

  /// Removes a mark from an entry of a kind; returns whether the entry had it.
  ///
  /// - Parameter name: The name in the directory, or nil for the directory itself.
  private static func remove(
    _ marker: Marker, from name: ByteString?, _ kind: FileKind, in directory: borrowing Directory,
    dryRun: Bool
  ) throws(SystemError) -> Bool {
    switch marker.sign {
    case .attribute:
      if marker.settings.backup == nil { return false }
      return try removeAttribute(of: marker, from: name, in: directory, dryRun: dryRun)
    case .file(let tag, _):
      guard kind == .directory else { return false }
      guard let name else {
        return try removeTag(ByteString(tag), of: marker, in: directory, dryRun: dryRun)
      }
      return try removeTag(
        ByteString(tag), of: marker, in: directory.directory(name), dryRun: dryRun)
    }
  }

  private static func removeAttribute(
    of marker: Marker, from name: ByteString?, in directory: borrowing Directory, dryRun: Bool
  ) throws(SystemError) -> Bool {
    guard let key = marker.linuxAttribute.map({ ByteString($0) }) else { return false }
    let attributes = name.map { directory.attributes(of: $0) } ?? directory.attributes
    guard let value = try attributes.value(of: key), marker.accepts(value) else { return false }
    if !dryRun { try attributes.remove(key) }
    return true
  }

  /// Removes a tag file whose content is that of a tag; any other file of that name stays.
  private static func removeTag(
    _ tag: ByteString, of marker: Marker, in directory: borrowing Directory, dryRun: Bool
  ) throws(SystemError) -> Bool {
    guard try directory.statusIfPresent(tag)?.kind == .file else { return false }
    let head = try directory.file(tag).read(count: 4096, at: 0)
    guard marker.accepts(head) else { return false }
    if !dryRun { try directory.remove(tag) }
    return true
  }

  /// Returns the kind of the entry.
  private func kind(_ action: String) throws(OperationError) -> FileKind {
    let kind = try onEntry(action) { directory, name throws(SystemError) in
      guard let name else { return FileKind.directory }
      return try directory.status(name).kind
    }
    guard kind == .file || kind == .directory else {
      throw failure(
        action, .notAFile, reason: "only files and directories have marks",
        hint: "mark the directory that contains it")
    }
    return kind
  }

  /// Calls `body` with the directory of the entry and its name, or with the container's root and
  /// nil. No link is followed.
  private func onEntry<Result>(
    _ action: String,
    _ body: (borrowing Directory, ByteString?) throws(SystemError) -> Result
  ) throws(OperationError) -> Result {
    do throws(SystemError) {
      let root = try Directory.open(resolved: container.absolutePath)
      guard let name = inner.lastComponent else { return try body(root, nil) }
      var cursor = DirectoryCursor(root: root)
      return try cursor.withDirectory(at: inner.parent.components) {
        directory throws(SystemError) in
        try body(directory, name)
      }
    } catch {
      throw failure(
        action, error.code, reason: error.reason,
        hint: error.isMissing ? "'sandboxctl classify' lists the entries of the device" : error.hint
      )
    }
  }

  private func failure(
    _ action: String, _ code: ErrorCode, reason: String, hint: String?
  ) -> OperationError {
    OperationError(
      code == .notFound ? .notFound : .failed, code: code, action,
      subject: container.logicalPrefix.appending(inner), reason: reason, hint: hint)
  }

  /// Returns the result, with the decision on the entry as a new scan finds it.
  private func outcome(_ changed: [String], isOfPlatform: Bool, _ dryRun: Bool) -> Outcome {
    let query = DeviceScan.query(inner, in: container, of: device, policy: policy).query
    let verdict = policy.explain(query).verdicts.keep
    return Outcome(
      path: container.logicalPrefix.appending(inner), changed: changed,
      isStored: dryRun ? nil : verdict.backup.mode() != .never,
      stillMarked: dryRun ? [] : marked(above: query), dataClass: verdict.dataClass,
      isOfPlatform: isOfPlatform)
  }

  /// Returns the directories above the entry with a mark that excludes it from all backups.
  private func marked(above query: EntryQuery) -> [ByteString] {
    let parts = inner.components
    return query.marks.sorted { $0.key < $1.key }.compactMap { depth, marks in
      guard depth < parts.count, policy.excludes(marks) else { return nil }
      return container.logicalPrefix.appending(ByteString(joining: parts.prefix(depth)))
    }
  }
}

extension CompiledPolicy {
  /// Whether any of the marks excludes a directory and everything below it from all backups.
  fileprivate func excludes(_ marks: MarkSet) -> Bool {
    markers.enumerated().contains { number, marker in
      marks.contains(MarkSet(marker: number)) && marker.isInherited
        && marker.settings.backup?.standard == .never
    }
  }
}
