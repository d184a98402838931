package import ArchiveStore
internal import DeviceDiscovery
package import DeviceScan
package import SandboxModel
package import SystemIO

/// A host's record of the marks that the last scans of a source found, for one run that holds the
/// source's lock.
///
/// It is a file of its own beside the state: it is read before the scan, and is valid whether or
/// not the snapshot is created. Marks that it lacks are looked for again.
package struct SourceMarks {
  private let place: StateDirectory
  private let key: StateKey
  /// The recorded marks, for the scan.
  package let memory: ExclusionMarkCache

  /// Opens the record of earlier scans; returns nil if there is no directory for it.
  package init?(
    of device: Device, in repository: Repository, cache: ByteString?, program: String,
    under lock: SourceLock?
  ) {
    guard let cache, let lock else { return nil }
    key = StateKey(repository: repository.id, source: SourceIdentity.digest(of: device))
    guard let place = try? StateDirectory(key, in: cache, under: lock),
      let start = try? place.time(key)
    else { return nil }
    self.place = place
    memory = ExclusionMarkCache(
      Self.read(place, key) ?? MarkTable(), at: RunClock(start: min(start, Host.now())),
      by: program)
  }

  private static func read(_ place: StateDirectory, _ key: StateKey) -> MarkTable? {
    guard case .open(let file)? = try? place.open(key.marks),
      let bytes = (try? file.readAll(limit: MarkTable.sizeLimit)) ?? nil
    else { return nil }
    return MarkTable(bytes, key)
  }

  /// Writes the marks that a scan of the source, or of a part of it, found. A file that a crash of
  /// the machine damaged is not used.
  package func keep(_ found: ExclusionMarkCache, isPart: Bool) {
    guard let bytes = found.table(isPart: isPart)?.encoded(key),
      let file = try? AtomicFile(in: place.directory, permissions: 0o600)
    else { return }
    do throws(SystemError) {
      try file.write(bytes)
      try file.commit(as: key.marks, durably: false)
    } catch {}
  }
}
