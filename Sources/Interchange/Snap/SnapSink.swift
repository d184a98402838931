internal import Codecs
package import SystemIO

/// Writes the data of snaps as snapshots of snapd: one zip archive, as `snap save` makes it, or a
/// tar archive of several, which `snap import-snapshot` reads.
///
/// An archive's SHA3-384 and size come before or after it in the output, so each one is first
/// written to a temporary file.
package struct SnapSink: ~Copyable, EntrySink {
  /// The form of the output.
  package enum Form: Sendable, Hashable {
    /// The snapshot of one snap.
    case single
    /// An export of any number of snapshots.
    case export

    /// Returns the form for a file's name: `.zip` means a single snapshot.
    package static func ofName(_ name: ByteString) -> Form {
      name.hasSuffix(".zip") ? .single : .export
    }
  }

  /// The facts that the entries do not contain.
  package struct Facts: Sendable {
    /// The metadata of the snaps by name.
    package var snaps: [ByteString: SnapMetadata]
    /// The user whose home the data comes from; nil for the data's owner.
    package var user: ByteString?
    /// The names of the owners.
    package var names: OwnerNames
    /// The time of the data.
    package var time: Timestamp

    /// Creates facts.
    package init(
      snaps: [ByteString: SnapMetadata], user: ByteString?, names: OwnerNames, time: Timestamp
    ) {
      (self.snaps, self.user, self.names, self.time) = (snaps, user, names, time)
    }
  }

  private let form: Form
  private let facts: Facts
  private let output: ByteOutput
  /// The tar archive of an export.
  private var export: TarSink?
  /// The snap whose entries are arriving.
  private var current: SnapDraft?
  /// The names of the files of the export.
  private var files: [ByteString] = []
  private var recorded = SkippedEntries()
  private var isSkipping = false

  /// Creates an output.
  package init(
    to output: @escaping ByteOutput, form: Form, _ facts: Facts
  ) throws(InterchangeError) {
    (self.output, self.form, self.facts) = (output, form, facts)
    if form == .export { export = try TarSink(to: output) }
  }

  package var skipped: SkippedEntries { recorded }

  package mutating func add(_ entry: ForeignEntry) throws(InterchangeError) {
    isSkipping = true
    guard let location = SnapPath.location(of: entry.path) else {
      recordUnless(isAboveContainer(entry), entry)
      return
    }
    if current?.metadata.name != location.snap {
      try endSnap()
      current = SnapDraft(metadata(of: location.snap), names: facts.names)
    }
    do throws(SnapFault) {
      try current?.add(entry, at: location)
      isSkipping = false
    } catch {
      recorded.append(path: entry.joinedPath, reason: error.reason)
    }
    if let failure = current?.failure { throw failure }
  }

  package mutating func write(_ bytes: UnsafeRawBufferPointer) throws(InterchangeError) {
    if !isSkipping { try current?.write(bytes) }
  }

  package mutating func finish() throws(InterchangeError) {
    try endSnap()
    guard !files.isEmpty else {
      throw InterchangeError(
        .unrepresentable, SpooledOutput.action, subject: "the snapshot",
        reason: "it has no data of a snap", hint: "name the data of a snap: SNAP:NAME")
    }
    guard form == .export else { return }
    let list: JSON = [
      "format": 1, "date": .string(SnapMetadata.text(of: facts.time)),
      "files": .array(files.map { .string($0.utf8 ?? "") }),
    ]
    try addToExport(SnapExport.listName, bytes: list.compactBytes)
    try export?.finish()
  }

  private func metadata(of name: ByteString) -> SnapMetadata {
    // snapd accepts the first local revision for any snap.
    facts.snaps[name]
      ?? SnapMetadata(name: name, revision: "x1", version: nil, time: facts.time)
  }

  /// Whether an entry needs no location: a directory above the containers, or imported metadata,
  /// which `facts` contains.
  private func isAboveContainer(_ entry: ForeignEntry) -> Bool {
    SnapPath.isMetadata(entry.path) || entry.kind == .directory && entry.path.count <= 2
  }

  private mutating func recordUnless(_ isExpected: Bool, _ entry: ForeignEntry) {
    if isExpected { return }
    recorded.append(
      path: entry.joinedPath, reason: "a snapshot of snapd contains no such container")
  }
}

// MARK: - Snapshots

extension SnapSink {
  /// Writes the snapshot of the current snap.
  private mutating func endSnap() throws(InterchangeError) {
    guard let draft = current.take() else { return }
    try draft.endArchive()
    recorded.append(draft.skipped)
    guard !draft.archives.isEmpty else { return }
    let metadata = draft.finishedMetadata(user: facts.user)
    if form == .single {
      guard files.isEmpty else {
        throw InterchangeError(
          .unrepresentable, SpooledOutput.action, subject: metadata.fileName,
          reason: "a zip file contains one snap, and the data is of several",
          hint: "name a snap, SNAP:NAME, or a file without the ending '.zip'")
      }
      try draft.writeZip(metadata, user: facts.user, to: output)
    } else {
      let zip = try SpooledOutput()
      try draft.writeZip(metadata, user: facts.user, to: zip.write)
      try addToExport(metadata.fileName, zip)
    }
    files.append(metadata.fileName)
  }

  private mutating func addToExport(
    _ name: ByteString, _ file: SpooledOutput
  ) throws(InterchangeError) {
    guard var sink = export else { return }
    try sink.add(
      ForeignEntry(
        path: [name], kind: .file(size: file.size), permissions: 0o600, modified: facts.time))
    try file.forEachPortion { (bytes) throws(InterchangeError) in
      try bytes.withUnsafeBytes { (raw) throws(InterchangeError) in try sink.write(raw) }
    }
    export = sink
  }

  private mutating func addToExport(
    _ name: ByteString, bytes: [UInt8]
  ) throws(InterchangeError) {
    guard var sink = export else { return }
    try sink.add(
      ForeignEntry(
        path: [name], kind: .file(size: UInt64(bytes.count)), permissions: 0o640,
        modified: facts.time))
    try bytes.span.withUnsafeBytes { (raw) throws(InterchangeError) in try sink.write(raw) }
    export = sink
  }
}
