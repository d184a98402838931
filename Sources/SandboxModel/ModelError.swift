public import SystemIO

/// What the model could not do: what was tried, on what, why not, and what to do next.
public struct ModelError: Error, Hashable, Sendable {
  /// What kind of failure it is, for those who decide by it.
  public enum Code: String, Sendable {
    /// The bytes are no property list, or a damaged one.
    case propertyList = "property-list"
    /// Something is larger or deeper than what is read.
    case limit
    /// A logical path that cannot be one.
    case logicalPath = "logical-path"
    /// A container whose name cannot be that of a directory of its layout.
    case containerName = "container-name"
    /// No device is there, or none of the layout that was asked for.
    case noDevice = "no-device"
    /// Several devices of that name.
    case ambiguousDevice = "ambiguous-device"
    /// No app of that name.
    case noApp = "no-app"
    /// Several apps of that name.
    case ambiguousApp = "ambiguous-app"
    /// A package that is damaged, or no package of an app.
    case package
    /// A package that would not be safe to unpack.
    case unsafePackage = "unsafe-package"
    /// A call to the system failed.
    case system
  }

  /// Where in the bytes: text has lines and columns, counted from 1; binary data has offsets.
  public enum Location: Hashable, Sendable {
    case line(Int, column: Int)
    case offset(Int)
  }

  public let code: Code
  /// What was tried, as it follows "cannot".
  public let attempt: String
  /// The path or name it was tried on, where it is known.
  public let subject: ByteString?
  public let place: Location?
  /// Why it could not be done.
  public let reason: String
  /// What to do about it, where there is something to say.
  public let hint: String?

  /// Makes an error.
  public init(
    _ code: Code, _ attempt: String, on subject: ByteString? = nil, at place: Location? = nil,
    _ reason: String, hint: String? = nil
  ) {
    self.code = code
    self.attempt = attempt
    self.subject = subject
    self.place = place
    self.reason = reason
    self.hint = hint
  }

  /// Makes an error of a failed system call.
  public init(_ error: SystemError) {
    self.init(
      .system, error.operation.rawValue, on: error.path, error.reason, hint: error.hint)
  }

  /// The same error, on a subject that who threw it did not know.
  public func on(_ subject: ByteString) -> ModelError {
    ModelError(code, attempt, on: subject, at: place, reason, hint: hint)
  }
}

extension ModelError: CustomStringConvertible {
  /// The whole sentence: "cannot read the property list 'Info.plist' (line 3, column 7): …".
  public var description: String {
    var text = "cannot " + attempt
    if let subject { text += " '\(subject)'" }
    if let place { text += " (\(place))" }
    return text + ": " + reason
  }
}

extension ModelError.Location: CustomStringConvertible {
  /// The place in words: `line 3, column 7` or `byte 12`.
  public var description: String {
    switch self {
    case .line(let line, let column): "line \(line), column \(column)"
    case .offset(let offset): "byte \(offset)"
    }
  }
}
