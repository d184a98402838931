internal import SandboxModel
internal import Synchronization
internal import SystemIO

/// The directories that the settings of a system's units name. One object serves all new containers
/// of a run: the unit files, of which there can be thousands, are read once, on first use.
package final class UnitDirectories: Sendable {
  private let known = Mutex<Known?>(nil)

  /// The directories of a system.
  private struct Known {
    let root: ByteString
    let names: Set<Name>
  }

  /// A directory that a unit names.
  private struct Name: Hashable {
    let unit: ByteString
    let purpose: LogicalContainer.UnitPurpose
    /// The path below the base directory of the purpose.
    let path: ByteString
  }

  /// Creates an object that has read nothing.
  package init() {}

  /// Whether a unit of a system names a directory.
  ///
  /// - Parameter path: its path below the base directory of its purpose.
  func has(
    _ path: ByteString, for purpose: LogicalContainer.UnitPurpose, of unit: ByteString,
    in root: borrowing Directory
  ) -> Bool {
    let name = Name(unit: unit, purpose: purpose, path: path)
    let place = root.path
    if let found = known.withLock({ $0?.root == place ? $0?.names : nil }) {
      return found.contains(name)
    }
    let names = Self.read(root)
    known.withLock { $0 = Known(root: place, names: names) }
    return names.contains(name)
  }

  private static func read(_ root: borrowing Directory) -> Set<Name> {
    var survey = Survey(root: root.path)
    let files = UnitFiles(below: root, &survey)
    var names: Set<Name> = []
    for unit in files.units {
      for claim in SystemdFinder.claims(of: unit, files.settings(of: unit), &survey) {
        names.insert(
          Name(unit: unit.name, purpose: claim.purpose.purpose, path: claim.path))
      }
    }
    return names
  }
}
