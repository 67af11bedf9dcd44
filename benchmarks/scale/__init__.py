"""How costs grow with clients, rows and dimension: measured on one machine, and a model beyond it.

measuring   points of sums, unions and rounds of secret sums, with all parties in this process
model       costs as sums of what parties do, with constants from measured points, checked on others
paper       bytes in closed form, and what a model says of a thousand clients
chart       the figure
rendering   the document
command     the command
"""
