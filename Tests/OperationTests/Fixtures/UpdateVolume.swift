import SystemIO
import TestSupport

/// A device with one app on its own volume, which can be filled.
struct UpdateVolume {
  /// The resource of a volume that is exhausted.
  enum Room: CaseIterable { case bytes, files }

  let fixture: UpdateFixture
  let mount: Mount

  init(_ options: String, isInstalled: Bool = true) throws {
    fixture = try UpdateFixture(isInstalled: isInstalled)
    if !isInstalled { try fixture.fillHarbor() }
    try fixture.base.copy("phone", to: "older")
    try fixture.base.directory.directory.removeTree("phone")
    try fixture.base.directory.directory.createDirectory("phone")
    mount = try Mount(inMemory: options, on: fixture.root)
    try reset()
  }

  /// Restores the device's contents, on a volume with free space.
  func reset() throws {
    let phone = try Directory.open(path: fixture.root)
    for name in try phone.names() { try? phone.removeTree(name) }
    for name in try phone.names() { try phone.remove(name) }
    try fixture.base.copy("older/.", to: "phone")
  }

  /// Makes the current contents the ones that `reset` restores.
  func keep() throws {
    try fixture.base.directory.directory.removeTree("older")
    try fixture.base.copy("phone", to: "older")
  }

  /// Fills the volume, in bytes or in files, so that `count` pages or files remain free.
  func fill(_ what: Room, leaving count: Int) throws {
    let phone = try Directory.open(path: fixture.root)
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

  /// Frees the space again.
  func empty() throws {
    let phone = try Directory.open(path: fixture.root)
    try? phone.remove("filler")
    try? phone.removeTree("fillers")
  }
}
