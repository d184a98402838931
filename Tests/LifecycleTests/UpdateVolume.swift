import Lifecycle
import SystemIO
import TestSupport

/// A device with one app on a volume of its own, which can be filled.
struct UpdateVolume {
  /// What of a volume is used up.
  enum Room: CaseIterable { case bytes, files }

  let rig: UpdateFixture
  let mount: Mount

  init(_ options: String, isInstalled: Bool = true) throws {
    rig = try UpdateFixture(isInstalled: isInstalled)
    if !isInstalled { try rig.fillHarbor() }
    try rig.rig.copy("phone", to: "older")
    try rig.rig.directory.directory.removeTree("phone")
    try rig.rig.directory.directory.createDirectory("phone")
    mount = try Mount(inMemory: options, on: rig.root)
    try reset()
  }

  /// Makes the device anew, on a volume with room.
  func reset() throws {
    let phone = try Directory.open(path: rig.root)
    for name in try phone.names() { try? phone.removeTree(name) }
    for name in try phone.names() { try phone.remove(name) }
    try rig.rig.copy("older/.", to: "phone")
  }

  /// What is in the device now is what `reset` makes from here on.
  func keep() throws {
    try rig.rig.directory.directory.removeTree("older")
    try rig.rig.copy("phone", to: "older")
  }

  /// Fills it, by bytes or by files, so that as many pages or files as said have room.
  func fill(_ what: Room, leaving count: Int) throws {
    let phone = try Directory.open(path: rig.root)
    switch what {
    case .bytes:
      let filler = try phone.create("filler")
      let page = [UInt8](repeating: 1, count: 4096)
      while (try? filler.write(page)) != nil {}
      let end = try filler.status().size / 4096
      try filler.truncate(to: (end - min(end, UInt64(count))) * 4096)
    case .files:
      try phone.createDirectory("fillers")
      let fillers = try phone.directory("fillers")
      var made = 0
      while (try? fillers.create(ByteString("\(made)"))) != nil { made += 1 }
      for number in 0..<min(made, count) { try fillers.remove(ByteString("\(number)")) }
    }
  }

  /// Makes room again.
  func empty() throws {
    let phone = try Directory.open(path: rig.root)
    try? phone.remove("filler")
    try? phone.removeTree("fillers")
  }
}
