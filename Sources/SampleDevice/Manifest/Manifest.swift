internal import SandboxModel
internal import SystemIO

/// The whole sample on one of its days, as a value: what makes it, changes it and tests it is given
/// this list. The same day gives the same list on every machine.
struct Manifest {
  /// Sorted by the bytes of their paths, so that a directory comes before what it holds.
  let entries: [ManifestEntry]
  /// Paths that another day has and this day lacks.
  let absent: [ByteString]
  let databases: [SampleDatabase]
  /// The time of the device's directory itself.
  let rootModified: Timestamp

  /// The file by which a sample is known.
  static let deviceFile: ByteString = "device.plist"

  /// Makes the list for day 0, as the sample begins, or for a later one.
  init(day: Int) throws(SampleError) {
    let containers = try Self.containers(day: day)
    var entries: [ByteString: ManifestEntry] = [:]
    var newest: [ByteString: Timestamp] = [:]
    func add(_ entry: ManifestEntry) {
      entries[entry.path] = entry
      if entry.content != .folder { note(entry.modified, in: entry.parent) }
    }
    func note(_ time: Timestamp, in directory: ByteString) {
      newest[directory] = max(newest[directory] ?? time, time)
    }
    let device = try Self.device()
    add(device)
    rootModified = device.modified
    for container in containers {
      for entry in container.entries { add(entry.placed(in: container.directory)) }
      for (path, removed) in container.absent {
        if let removed { note(removed, in: container.directory.appending(path).parent) }
      }
    }
    for path in entries.keys { Self.addDirectories(above: path, to: &entries) }
    for (path, time) in newest { entries[path]?.modified = time }
    self.entries = entries.values.sorted { $0.path < $1.path }
    absent = containers.flatMap { container in
      container.absent.map { container.directory.appending($0.path) }
    }
    databases = containers.flatMap(\.databases)
  }

  /// Adds the directories on the way to a path that no container names itself.
  private static func addDirectories(
    above path: ByteString, to entries: inout [ByteString: ManifestEntry]
  ) {
    var directory = path.parent
    while !directory.isEmpty, entries[directory] == nil {
      entries[directory] = .directory(directory)
      directory = directory.parent
    }
  }

  /// What a simulator writes about a device: an iPhone with iOS 17.5.
  private static func device() throws(SampleError) -> ManifestEntry {
    try .xmlPlist(
      deviceFile,
      .members([
        "UDID": .string("8E81973E-0BEC-47B0-B898-D190F9EBDACC"),
        "deviceType": .string("com.apple.CoreSimulator.SimDeviceType.iPhone-15"),
        "isDeleted": .bool(false),
        "isEphemeral": .bool(false),
        "name": .string("Sample iPhone"),
        "runtime": .string("com.apple.CoreSimulator.SimRuntime.iOS-17-5"),
        "runtimePolicy": .string("default"),
        "state": .integer(1),
      ]), day: -200)
  }

  /// Four apps, of which one is offloaded, an extension, and two groups.
  private static func containers(day: Int) throws(SampleError) -> [ContainerPlan] {
    [
      try NotebookApp.bundle(), try NotebookApp.data(day: day), try NotebookApp.shareExtension(),
      try DarkroomApp.bundle(), try DarkroomApp.data(day: day),
      try ReaderApp.bundle(), try ReaderApp.data(day: day),
      try PodcastApp.data(),
      try SampleGroups.library(), try SampleGroups.podcast(),
    ]
  }
}

extension Manifest {
  /// Whether a directory's device file is the sample's.
  func isDeviceFile(in directory: borrowing Directory) throws(SystemError) -> Bool {
    do {
      let bytes = try directory.file(Self.deviceFile).readAll(limit: 64 * 1024)
      guard let bytes else { return false }
      return entries.contains { $0.path == Self.deviceFile && $0.content == .file(bytes) }
    } catch {
      if error.isMissing { return false }
      throw error
    }
  }
}

extension ManifestEntry {
  /// The entry with its path, and that of the file it is another name of, below a container.
  fileprivate func placed(in container: ByteString) -> ManifestEntry {
    var placed = self
    placed.path = container.appending(path)
    if case .hardLink(let file) = content {
      placed.content = .hardLink(container.appending(file))
    }
    return placed
  }
}
