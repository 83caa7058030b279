"""Reports on a prepared model before it is converted: detectors watch its layers with observers of their own
and say which way of quantising suits each (`model_report.ModelReport`)."""
