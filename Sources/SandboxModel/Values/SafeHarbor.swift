public import SystemIO

/// Data that a restore brought to a device whose app is not installed there: it waits, at logical
/// paths below `.sandboxctl/safe-harbor` in the device's root, until the app is, and is never
/// dropped by age alone.
public struct SafeHarbor: Hashable, Sendable {
  /// The app whose data waits.
  public let app: ByteString
  /// Its directory, absolute.
  public let path: ByteString
  /// The logical paths of the containers that wait.
  public let containers: [ByteString]
  /// When something last came into it.
  public let since: Timestamp

  private static let place = OwnNames.directory.appending("safe-harbor")

  /// Where a container of an app that is not there waits.
  public static func path(for container: ByteString, root: ByteString) -> ByteString {
    root.appending(place).appending(container)
  }

  /// What waits on a device; what cannot be read is left out.
  public static func all(on device: Device) -> [SafeHarbor] {
    let top = path(for: "apps", root: device.root)
    guard let apps = try? Directory.open(path: top), let names = try? apps.names() else {
      return []
    }
    return names.compactMap { name in
      guard let app = LogicalName(component: name), let directory = try? apps.directory(name),
        let status = try? directory.status()
      else { return nil }
      let logical = ByteString("apps").appending(name)
      let waiting = containers(directory, logical)
      // What an app has adopted waits no more.
      if waiting.isEmpty { return nil }
      return SafeHarbor(
        app: app.identifier, path: top.appending(name), containers: waiting, since: status.modified)
    }
  }

  /// Removes the directories of an app in which nothing waits any more, and what an interrupted operation of this
  /// program left in them; what holds something stays.
  public static func removeEmpty(of app: ByteString, root: ByteString) {
    let top = path(for: "apps", root: root)
    let name = LogicalName(app).component
    guard let apps = try? Directory.open(path: top), let directory = try? apps.directory(name)
    else {
      return
    }
    if let extensions = try? directory.directory("extensions") {
      for name in (try? extensions.names()) ?? [] {
        if let inner = try? extensions.directory(name) { removeOwn(in: inner) }
        try? extensions.removeDirectory(name)
      }
      try? directory.removeDirectory("extensions")
    }
    removeOwn(in: directory)
    try? apps.removeDirectory(name)
  }

  private static func removeOwn(in directory: borrowing Directory) {
    for name in (try? directory.names()) ?? [] where OwnNames.has(name) {
      try? directory.remove(name)
    }
  }

  private static func containers(_ directory: borrowing Directory, _ path: ByteString)
    -> [ByteString]
  {
    var found: [ByteString] = []
    for name in (try? directory.names()) ?? [] where !OwnNames.has(name) {
      if name == "extensions", let inner = try? directory.directory(name) {
        for own in (try? inner.names()) ?? [] {
          found.append(path.appending(name).appending(own).appending("data"))
        }
      } else {
        found.append(path.appending(name))
      }
    }
    return found
  }
}
