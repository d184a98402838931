public import SystemIO

extension Device {
  /// The app that a user means: by its identifier; else by the last component of it or by its
  /// display name, in any case of letters, when only one app has it.
  ///
  /// - Throws: `noApp` when there is none, `ambiguousApp` with the candidates when there are
  ///   several.
  public func app(_ name: ByteString) throws(ModelError) -> App {
    if let app = apps.first(where: { $0.identifier.bytes == name }) { return app }
    let wanted = name.folded
    let candidates = apps.filter { app in
      app.identifier.bytes.folded == wanted
        || app.identifier.lastComponent.folded == wanted
        || app.displayName.map { $0.folded == wanted } ?? false
    }
    guard let app = candidates.first else {
      throw ModelError(
        .noApp, "find the app", on: name, "this device has no such app",
        hint: "'sandboxctl apps' lists the apps")
    }
    if candidates.count > 1 {
      let names = candidates.map(\.identifier.description).joined(separator: ", ")
      throw ModelError(
        .ambiguousApp, "find the app", on: name, "several apps are called so: \(names)",
        hint: "give the whole identifier")
    }
    return app
  }
}

extension ByteString {
  /// The name with its letters in lower case: all of Unicode's where it is UTF-8, else ASCII's.
  var folded: ByteString {
    if let text = utf8 { return ByteString(text.lowercased()) }
    return ByteString(
      bytes.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 })
  }
}
