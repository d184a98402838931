internal import SandboxModel
package import SystemIO

/// The ownership of the program's directories on a device: they belong to the owner of the
/// directory that contains them, even if root creates them. Otherwise a restore by root would lock
/// out the device's user.
package enum ControlOwner {
  /// Changes the owner of the directories of a path that root created, from `.sandboxctl` down, to
  /// the owner of the directory above.
  package static func give(_ path: ByteString) throws(SystemError) {
    guard Host.userID == 0 else { return }
    let parts = path.components
    guard let first = parts.firstIndex(of: OwnNames.directory) else { return }
    let above = ByteString(joining: parts[..<first], isAbsolute: true)
    let owner = try Directory.open(resolved: above).status()
    guard owner.user != 0 else { return }
    for end in first..<parts.count {
      let directory = try Directory.open(
        resolved: above.appending(ByteString(joining: parts[first...end])))
      if try directory.status().user == 0 {
        try directory.setOwner(user: owner.user, group: owner.group)
      }
    }
  }

}
