package import SandboxModel
package import SystemIO

/// Data restored to a device on which its app is not installed. It is stored at logical paths below
/// `.sandboxctl/safe-harbor` in the device's root until the app is installed, and is never deleted
/// because of age alone.
package struct SafeHarbor: Hashable, Sendable {
  /// The app that owns the data.
  package let app: ByteString
  /// Its directory, absolute.
  package let path: ByteString
  /// The logical paths of the stored containers.
  package let containers: [ByteString]
  /// The time of the last change to the directory.
  package let since: Timestamp

  private static let directory = OwnNames.directory.appending("safe-harbor")

  /// Returns the path at which a container is stored until its app is installed.
  package static func path(for container: ByteString, root: ByteString) -> ByteString {
    root.appending(directory).appending(container)
  }

  /// Returns all data stored on a device, except data that cannot be read.
  package static func all(on device: Device) -> [SafeHarbor] {
    let top = path(for: "apps", root: device.root)
    guard let apps = try? Directory.open(resolved: top), let names = try? apps.names() else {
      return []
    }
    return names.compactMap { name in
      guard let app = LogicalName(component: name), let directory = try? apps.directory(name),
        let status = try? directory.status()
      else { return nil }
      let logical = ByteString("apps").appending(name)
      let waiting = containers(directory, logical)
      // The containers that an app has adopted are no longer here.
      if waiting.isEmpty { return nil }
      return SafeHarbor(
        app: app.identifier, path: top.appending(name), containers: waiting, since: status.modified)
    }
  }

  /// Removes an app's directories that contain no more containers, with the remains of interrupted
  /// operations of this program. Directories with other content remain.
  package static func removeEmpty(of app: ByteString, root: ByteString) {
    let top = path(for: "apps", root: root)
    let name = LogicalName(app).component
    guard let apps = try? Directory.open(resolved: top), let directory = try? apps.directory(name)
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
