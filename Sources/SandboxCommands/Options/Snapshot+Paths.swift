internal import ArchiveStore
internal import Lifecycle
internal import SandboxModel
internal import SystemIO

extension Snapshot {
  /// Returns the logical path of an argument: a logical path, a path in an app's data, or a path of
  /// the device, which is absolute, begins with a dot, or exists in the working directory. Empty
  /// for the whole snapshot.
  func logicalPath(_ path: ByteString) throws -> ByteString {
    if path.isAbsolute { return try logicalPath(ofReal: path) }
    let parts = path.components
    guard let first = parts.first else { return "" }
    if [".", ".."].contains(first) {
      return try logicalPath(ofReal: Host.workingDirectory()?.appending(path) ?? path)
    }
    if ["apps", "groups", "folders"].contains(first) { return ByteString(joining: parts) }
    let app: AppRecord
    do {
      app = try self.app(first)
    } catch {
      if let there = try? Host.realPath(path), let logical = inContainer(there) { return logical }
      throw error
    }
    return ByteString(joining: ["apps", ByteString(app.identifier), "data"] + parts.dropFirst())
  }

  /// Returns the logical path of an absolute path, as written or with symbolic links resolved.
  private func logicalPath(ofReal path: ByteString) throws -> ByteString {
    let parts = path.components.filter { $0 != "." }
    let written = ByteString(joining: parts, isAbsolute: true)
    for candidate in [written, try? Host.realPath(path)].compactMap({ $0 }) {
      if let logical = inContainer(candidate) { return logical }
      if candidate == device.root { return "" }
    }
    throw LifecycleError(
      .notFound,
      "cannot find '\(path)' in the snapshot: it is not in a container of the device "
        + "'\(device.root)'",
      hint: "'sandboxctl ls' shows logical paths, which do not begin with a slash")
  }

  private func inContainer(_ path: ByteString) -> ByteString? {
    let around = device.containers.filter { path.isWithin($0.realPath) }
    guard let container = around.max(by: { $0.realPath.count < $1.realPath.count }) else {
      return nil
    }
    return container.path.appending(
      path.relative(to: container.realPath))
  }

  /// Returns the app of a name: its identifier, or the last component of it or its display name, in
  /// any case, if only one app matches.
  func app(_ name: ByteString) throws -> AppRecord {
    if let app = apps.first(where: { ByteString($0.identifier) == name }) { return app }
    let found = apps.filter { app in name.utf8.map(app.isCalled) ?? false }
    guard let app = found.first else {
      let hint =
        apps.isEmpty
        ? "logical paths begin with 'apps', 'groups' or 'folders'"
        : "logical paths begin with 'apps', 'groups' or 'folders'; the snapshot's apps are "
          + Self.listed(apps.map(\.identifier))
      throw LifecycleError(
        .notFound, "cannot find '\(name)' in the snapshot: it is not one of its apps", hint: hint)
    }
    guard found.count == 1 else {
      throw LifecycleError(
        .unclear,
        "'\(name)' is ambiguous: it matches several apps: "
          + Self.listed(found.map(\.identifier)), hint: "give the full identifier")
    }
    return app
  }

  /// Returns the first five names in quotes, and the number of the others.
  private static func listed(_ names: [String]) -> String {
    let shown = names.prefix(5).map { "'\(ByteString($0))'" }.joined(separator: ", ")
    return names.count > 5 ? "\(shown) and \(names.count - 5) more" : shown
  }
}

extension AppRecord {
  /// Whether a text names the app: its identifier, the last component of it, or its display name,
  /// in any case.
  func isCalled(_ text: String) -> Bool {
    let wanted = text.lowercased()
    let id = identifier.lowercased()
    return id == wanted || id.split(separator: ".").last.map(String.init) == wanted
      || name?.lowercased() == wanted
  }
}
