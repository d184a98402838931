internal import ArchiveStore
internal import DatabaseCapture
internal import DeviceScan
internal import SystemIO

extension BackupWorker {
  /// Returns the stored entry of a file that is unchanged since an earlier boot and begins like no
  /// database, or nil if the file must be read (docs/state-file.md, "Restarts").
  mutating func readUncertain(
    _ index: Int, in context: WorkItemContext
  ) throws -> ReadEntry? {
    let directory = context.directory
    guard let stored = directory.known.uncertain[Int32(index)], !context.item.isLate else {
      return nil
    }
    let isByName = directory.known.databases[Int32(index)] != nil
    guard try !isByName && isUnchangedAndPlain(index, in: directory) else {
      expect(index, in: directory)
      return nil
    }
    let status = directory.scan.entries[index].status
    var entry = stored
    entry.linkGroup = run.links.name(of: status.identity)
    return ReadEntry(entry: entry, status: status, isStable: true)
  }

  /// Whether a file is the one that was scanned and not a database; false if that cannot be
  /// determined, since reading the file reports the error.
  private mutating func isUnchangedAndPlain(
    _ index: Int, in directory: DirectoryContext
  ) throws -> Bool {
    let scanned = directory.scan.entries[index].status
    let name = directory.scan.name(index)
    do {
      return try inDirectory(directory) { _, opened in
        let file = try opened.fileUntouched(name)
        let status = try file.status()
        guard status.identity == scanned.identity, status.isSameContent(as: scanned) else {
          return false
        }
        return try !DatabaseUnit.hasMagic(file)
      }
    } catch is SystemError {
      return false
    }
  }

  /// Adds a file that turns out to need reading, and those that are read with it, to the expected
  /// totals.
  private func expect(_ index: Int, in directory: DirectoryContext) {
    let known = directory.known
    for file in [Int32(index)] + (known.databases[Int32(index)]?.companions ?? [])
    where known.uncertain[file] != nil {
      let size = directory.scan.entries[Int(file)].status.size
      run.request.counters.expect(files: 1, bytes: size)
    }
  }
}
