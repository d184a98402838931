internal import AppPackages
internal import SandboxModel
package import SystemIO

/// The migration of data into a new container, by moves and links, as the app's
/// container-migration.plist describes (App Sandbox Design Guide, Migrating an App to a Sandbox).
extension AppChangePlanner {
  func migrate(_ migration: ContainerMigration, _ planned: inout PlannedContainer) {
    var taken: Set<ByteString> = Set(AppExchange.standard(device.layout))
    for move in migration.moves {
      guard let status = outside(move.source, &planned) else { continue }
      if taken.contains(where: { $0.isWithin(move.destination) }) {
        note(move.source, "another entry is placed at '\(move.destination)'", in: &planned)
        continue
      }
      taken.insert(move.destination)
      planned.moves.append(
        PlannedMove(
          from: device.root.appending(move.source), inner: move.destination, status: status))
    }
    for link in migration.links where outside(link, &planned) != nil {
      planned.ownLinks.append(link)
    }
  }

  /// Returns the status of a path in the home directory if a rename can move it, or nil. Only a
  /// path that exists and cannot be moved is reported.
  private func outside(_ path: ByteString, _ planned: inout PlannedContainer) -> FileStatus? {
    do throws(SystemError) {
      var ladder = DirectoryCursor(root: try Directory.open(resolved: device.root))
      let parts = path.components
      for depth in parts.indices {
        let found = try ladder.withDirectory(at: Array(parts[..<depth])) {
          directory throws(SystemError) in
          try directory.statusIfPresent(parts[depth])
        }
        guard let found else { return nil }
        if found.isMountPoint {
          note(path, "another volume is mounted there", in: &planned)
          return nil
        }
        if depth == parts.count - 1 { return found }
      }
    } catch {
      if !error.isMissing { note(path, error.reason, in: &planned) }
    }
    return nil
  }

  private func note(_ path: ByteString, _ reason: String, in planned: inout PlannedContainer) {
    planned.notMoved.append(
      PathRemark(path: device.root.appending(path), remark: "it was not moved: \(reason)"))
  }
}

/// An entry outside that moves into a container when that is created.
package struct PlannedMove: Sendable, Hashable {
  /// Its current path, absolute.
  package let from: ByteString
  /// Its path in the container.
  package let inner: ByteString
  let status: FileStatus
}
