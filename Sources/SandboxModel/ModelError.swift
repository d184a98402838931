public import Codecs
public import SystemIO

/// An error of the model: the attempted action, its subject, the reason, and a hint.
public struct ModelError: Error, Hashable, Sendable {
  /// The kind of error, for callers that distinguish them.
  public enum Code: String, Sendable {
    /// The bytes are not a property list, or the property list is damaged.
    case propertyList = "property-list"
    /// A size or depth exceeds its limit.
    case limit
    /// An invalid logical path.
    case logicalPath = "logical-path"
    /// A container name that is not valid for a directory of its layout.
    case containerName = "container-name"
    /// There is no device, or none with the requested layout.
    case noDevice = "no-device"
    /// Several devices match the name.
    case ambiguousDevice = "ambiguous-device"
    /// No app matches the name.
    case noApp = "no-app"
    /// Several apps match the name.
    case ambiguousApp = "ambiguous-app"
    /// A package that is damaged or does not contain an app.
    case package
    /// A package that is not safe to extract.
    case unsafePackage = "unsafe-package"
    /// A system call failed.
    case system
  }

  /// A position in the input: text has lines and columns, counted from 1; binary data has offsets.
  public enum Location: Hashable, Sendable {
    case line(Int, column: Int)
    case offset(Int)
  }

  public let code: Code
  /// The action that failed, as the words after "cannot".
  public let action: String
  /// The path or name on which it was attempted, if known.
  public let subject: ByteString?
  public let location: Location?
  /// The reason.
  public let reason: String
  /// The suggested remedy, if any.
  public let hint: String?
  /// The failed system call, if there is one.
  public let cause: SystemError?

  /// Creates an error.
  public init(
    _ code: Code, _ action: String, on subject: ByteString? = nil, at location: Location? = nil,
    reason: String, hint: String? = nil, cause: SystemError? = nil
  ) {
    self.code = code
    self.action = action
    self.subject = subject
    self.location = location
    self.reason = reason
    self.hint = hint
    self.cause = cause
  }

  /// Creates an error from a failed system call.
  ///
  /// - Parameter action: the attempted action (default: the system call).
  public init(_ error: SystemError, _ action: String? = nil) {
    self.init(
      .system, action ?? error.operation.rawValue, on: error.path, reason: error.reason,
      hint: error.hint, cause: error)
  }

  /// Creates an error from a property list that could not be read.
  public init(reading error: CodecError) { self.init(error, "read the property list") }

  /// Creates an error from a property list that could not be written.
  public init(writing error: CodecError) { self.init(error, Self.writingPropertyList) }

  public static let writingPropertyList = "write the property list"

  private init(_ error: CodecError, _ action: String) {
    let location: Location? =
      switch error.position {
      case .mark(let mark): .line(mark.line, column: mark.column)
      case .offset(let offset): .offset(offset)
      case nil: nil
      }
    // The reason may quote the list: escaped, it cannot break a line of output.
    self.init(
      error.kind == .limit ? .limit : .propertyList, action, at: location,
      reason: ByteString(error.reason).description)
  }
}

extension ModelError: ReportableError {
  public var parts: ErrorParts { ErrorParts(action: action, subject: subject, reason: reason) }

  /// The stable code.
  public var errorCode: ErrorCode {
    switch code {
    case .propertyList: .invalidPropertyList
    case .limit: .limitExceeded
    case .logicalPath: .invalidPath
    case .containerName: .invalidContainerName
    case .noDevice: .noDevice
    case .ambiguousDevice: .ambiguousDevice
    case .noApp: .noApp
    case .ambiguousApp: .ambiguousApp
    case .package: .invalidPackage
    case .unsafePackage: .unsafePackage
    case .system: cause?.code ?? .systemError
    }
  }

  /// The complete message: "cannot read the property list 'Info.plist' (line 3, column 7): …".
  public var description: String {
    var text = "cannot " + action
    if let subject { text += " '\(subject)'" }
    if let location { text += " (\(location))" }
    return text + ": " + reason
  }
}

extension ModelError.Location: CustomStringConvertible {
  /// The position as text: `line 3, column 7` or `byte 12`.
  public var description: String {
    switch self {
    case .line(let line, let column): "line \(line), column \(column)"
    case .offset(let offset): "byte \(offset)"
    }
  }
}
